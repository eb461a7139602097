#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/plan/Plan.h"
#include "runtime/tree/KvTree.h"

#include <span>
#include <vector>

namespace deft::bench {

/// Bytes per second at which `threads` threads only read K and V of these tokens in place, each byte once per
/// pass: this machine's limit for a cache of this size and layout. The best of several passes.
double plainReadBandwidth(const spec::Variant &variant, std::span<const tree::Stretch> tokens,
                          const exec::Inputs &inputs, int threads);

/// The tokens that a plan's items read, each once, in the order of their places. Tokens that a mask hides
/// from all queries are excluded.
std::vector<tree::Stretch> tokensRead(const plan::Plan &plan);

} // namespace deft::bench
