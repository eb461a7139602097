#pragma once

#include "compiler/support/Result.h"
#include "runtime/exec/Inputs.h"
#include "runtime/tree/CachePlacement.h"
#include "runtime/tree/KvTree.h"

#include <cstdint>
#include <vector>

/// Arrays with elements for each slot of the cache or each query (LANGUAGE.md, rules P4 to P6), where
/// inputs are made for a tree. What is given for them counts the tree's tokens, not the cache's slots.
namespace deft::exec {

/// Whether what is given fits: nothing, which means random values; one value for all; or one for each token
/// (and of it for each KV head, where tokens have one of each), in the order of the nodes, or for each query.
support::Result<void> checkSizedParams(const spec::Variant &variant, const tree::KvTree &tree,
                                       const std::vector<ParamValue> &params);

/// The same as backends read it; all other parameters stay as they are. Random values are those of a few
/// documents, some dozens of tokens at a time, and of f32 nearly normal. A slot of no token has a value that
/// shows where it is read: NaN, or the largest i32.
std::vector<ParamValue> placeSizedParams(const spec::Variant &variant, const tree::KvTree &tree,
                                         const tree::CachePlacement &placement,
                                         std::vector<ParamValue> params, std::uint64_t seed);

} // namespace deft::exec
