#pragma once

#include <string_view>

namespace deft::test {

/// How many reductions over a warp a cubin has under a predicate. ptxas 13.0 makes such of reductions that
/// stand under a condition that is the same for all lanes, and names the predicate by the number of a uniform
/// one: then kernels skip what rows see. So device code reduces under no condition.
int predicatedReductions(std::string_view cubin);

} // namespace deft::test
