#pragma once

#include "runtime/tree/KvTree.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Trees for tests: the edge list first, then random ones.
namespace deft::test {

struct ForestLimits {
  int nodes = 24;
  int tokens = 90; ///< of one node
  int queries = 40;
};

/// Any forest within the limits: several roots, empty nodes, queries on inner nodes and inside nodes,
/// queries that see nothing. The same seed gives the same forest everywhere.
tree::KvTree randomForest(std::uint64_t seed, const ForestLimits &limits = {});

/// A random forest with causal stretches in some of its nodes, beside the queries that there are: each of
/// some consecutive tokens has a query of its own. Their queries come in order or mixed; stretches may
/// overlap.
tree::KvTree causalForest(std::uint64_t seed, const ForestLimits &limits = {});

/// Levels from the root down: nodes per level and tokens per node; one query on each leaf.
tree::KvTree levelTree(const std::vector<int> &nodesPerLevel, const std::vector<int> &tokensPerNode);

/// The edge list: a name and a tree each.
std::vector<std::pair<std::string, tree::KvTree>> edgeTrees();

} // namespace deft::test
