#pragma once

#include "runtime/tree/KvTree.h"
#include "runtime/tree/Ranks.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

/// Layouts of trees over ranks, for tests.
namespace deft::test {

/// A random layout of a placed tree for `rank`; equal seeds give all ranks the same one. Nodes and pages
/// beyond the current tree have holders as well, so leaves can grow.
inline tree::Ranks randomRanks(const tree::KvTree &tree, int count, int rank, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto layout = static_cast<tree::RankLayout>(random() % 3);
  const int units[] = {1, 16, 3, 64};
  int unit = units[random() % 4];
  std::vector<int> holders;
  if (layout == tree::RankLayout::ByNode) {
    for (std::size_t node = 0; node < tree.nodes().size(); ++node)
      holders.push_back(static_cast<int>(random() % static_cast<unsigned>(count)));
  } else if (layout == tree::RankLayout::ByPage && random() % 2 == 0) {
    unit = 16;
    holders = tree::proposeHolders(tree, count, unit);
    for (int &holder : holders) // pages in gaps between nodes
      holder = holder == tree::Ranks::kNobody ? 0 : holder;
    holders.resize(holders.size() + 64, 0);
  } else if (layout == tree::RankLayout::ByPage) {
    int end = 0;
    for (const tree::Node &node : tree.nodes())
      end = std::max(end, node.location + node.tokens);
    for (int page = 0; page < end / unit + 70; ++page)
      holders.push_back(static_cast<int>(random() % static_cast<unsigned>(count)));
  }
  auto made = tree::Ranks::make(count, rank, layout, unit, std::move(holders));
  return std::move(made).value();
}

/// The tree of one of the ranks.
inline tree::KvTree ofRank(const tree::KvTree &tree, int count, int rank, std::uint64_t seed) {
  tree::KvTree own = tree;
  own.setRanks(randomRanks(tree, count, rank, seed));
  return own;
}

} // namespace deft::test
