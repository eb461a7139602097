#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/plan/Plan.h"
#include "runtime/tree/KvTree.h"

#include <span>
#include <vector>

namespace deft::bench {

/// Bytes per second at which `threads` threads only read K and V of these tokens where they lie, each byte
/// once a pass: what this machine can do at best for a cache of this size and place. The best of some passes.
double plainReadBandwidth(const spec::Variant &variant, std::span<const tree::Stretch> tokens,
                          const exec::Inputs &inputs, int threads);

/// The tokens that a plan's items read, each once, by where they lie: what a mask hides from all is not
/// among them.
std::vector<tree::Stretch> tokensRead(const plan::Plan &plan);

} // namespace deft::bench
