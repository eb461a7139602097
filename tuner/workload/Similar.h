#pragma once

#include "runtime/tree/KvTree.h"

#include <cstdint>

namespace deft::workload {

/// Another tree of the same kind, as a server would see it: some leaves are missing, node lengths differ by
/// about a tenth, nodes of token trees still have one token. The same seed gives the same tree everywhere;
/// most have the class of `tree`. Seeds from kFarSeeds on give trees about as far away as a class reaches:
/// lengths differ by up to a third, and every third to sixteenth leaf is missing; fewer have the class.
tree::KvTree similarTree(const tree::KvTree &tree, std::uint64_t seed);
inline constexpr std::uint64_t kFarSeeds = 1'000'000;

/// The i-th of a series of seeds in which near and far trees alternate.
constexpr std::uint64_t mixedSeed(std::uint64_t i) { return i % 2 == 0 ? i / 2 : kFarSeeds + i / 2; }

} // namespace deft::workload
