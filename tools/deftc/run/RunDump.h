#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/tree/KvTree.h"
#include "tools/deftc/common/Context.h"

#include <string>
#include <vector>

namespace deft::cli {

/// Whether a dump into this folder takes the place of no file that is read, and can be expected to be
/// written: to be asked before a run for it. An empty name is none.
support::Result<void> checkDump(Context &context, const std::string &folder);

/// Writes what another program needs to compute the result anew, into a folder that is made:
///   tree.json             the tree, without nodes that are no more: its node 3 is row block 3 of k and v
///   q.npy out.npy         float32, [query][query_heads][dim]
///   k.npy v.npy           float32, [token][kv_heads][dim]: the tokens of node 0, then those of node 1, ...
///   k_scales.npy          float32, [token][1][scale], of a cache whose rows have them; k has been multiplied
///   lse.npy               float32, [query][query_heads], natural logarithm; only where the spec has `with
///   lse` spec.json             the checked spec as `deftc emit --as json` prints it, and the parameters'
///   values
/// q, k and v as they were computed with, after rounding to the dtype.
support::Result<void> dumpRun(Context &context, const std::string &folder, const spec::Variant &variant,
                              const tree::KvTree &tree, const exec::Inputs &inputs,
                              const exec::Outputs &outputs);

} // namespace deft::cli
