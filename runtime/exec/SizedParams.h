#pragma once

#include "compiler/support/Result.h"
#include "runtime/exec/Inputs.h"
#include "runtime/tree/CachePlacement.h"
#include "runtime/tree/KvTree.h"

#include <cstdint>
#include <vector>

/// Arrays with an element for each slot of the cache or each query (LANGUAGE.md, rules P4 to P6), for inputs
/// that are made for a tree. Given values count the tree's tokens, not the cache's slots.
namespace deft::exec {

/// Checks the number of given values: none (random values); one for all; one for each query; or one for each
/// token in the order of the nodes, times the KV heads if each head of a token has its own.
support::Result<void> checkSizedParams(const spec::Variant &variant, const tree::KvTree &tree,
                                       const std::vector<ParamValue> &params);

/// The arrays as backends read them; other parameters do not change. Random integers look like those of a few
/// documents, some dozens of tokens each; random f32 are about normal. A slot without a token holds NaN or
/// the largest i32, so that reading it fails visibly.
std::vector<ParamValue> placeSizedParams(const spec::Variant &variant, const tree::KvTree &tree,
                                         const tree::CachePlacement &placement,
                                         std::vector<ParamValue> params, std::uint64_t seed);

} // namespace deft::exec
