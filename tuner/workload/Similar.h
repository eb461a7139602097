#pragma once

#include "runtime/tree/KvTree.h"

#include <cstdint>

namespace deft::workload {

/// Another tree of the same kind, as a server would meet it: some leaves fewer, lengths of nodes others by a
/// tenth or so, tokens of token trees still one each. The same seed gives the same tree everywhere; most have
/// the class of `tree`. Seeds from kFarSeeds on give trees that are about as far away as a class reaches: all
/// lengths others by up to a third, every third to sixteenth leaf gone; fewer of them have the class.
tree::KvTree similarTree(const tree::KvTree &tree, std::uint64_t seed);
inline constexpr std::uint64_t kFarSeeds = 1'000'000;

/// The i-th of a row of seeds in which near trees and far ones alternate.
constexpr std::uint64_t mixedSeed(std::uint64_t i) { return i % 2 == 0 ? i / 2 : kFarSeeds + i / 2; }

} // namespace deft::workload
