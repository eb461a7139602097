#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/tree/KvTree.h"

namespace deft::bench {

/// Bytes per second at which `threads` threads only read K and V of the tree's tokens where they lie, each
/// byte once a pass: what this machine can do at best for a cache of this size and place. The best of some
/// passes.
double plainReadBandwidth(const spec::Variant &variant, const tree::KvTree &tree, const exec::Inputs &inputs,
                          int threads);

} // namespace deft::bench
