#pragma once

#include "runtime/tree/KvTree.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Trees for tests: first the list of edge cases, then random ones.
namespace deft::test {

struct ForestLimits {
  int nodes = 24;
  int tokens = 90; ///< of one node
  int queries = 40;
};

/// A random forest within the limits: several roots, empty nodes, queries on inner nodes and inside nodes,
/// queries that see nothing. Equal seeds give equal forests on all platforms.
tree::KvTree randomForest(std::uint64_t seed, const ForestLimits &limits = {});

/// A random forest with causal stretches in some nodes: consecutive tokens with one query each, in
/// addition to the other queries. The stretches' queries may be shuffled, and stretches may
/// overlap.
tree::KvTree causalForest(std::uint64_t seed, const ForestLimits &limits = {});

/// A tree by levels from the root: nodes per level, tokens per node, and one query on each leaf.
tree::KvTree levelTree(const std::vector<int> &nodesPerLevel, const std::vector<int> &tokensPerNode);

/// The edge cases, each with a name.
std::vector<std::pair<std::string, tree::KvTree>> edgeTrees();

} // namespace deft::test
