#include "tuner/workload/Similar.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace deft::workload {

tree::KvTree similarTree(const tree::KvTree &tree, std::uint64_t seed) {
  std::mt19937_64 engine(seed); // its numbers are the same everywhere; those of distributions are not
  const auto factor = [&](double spread) {
    constexpr double kMost = 18446744073709551615.0;
    return 1 + spread * (2 * static_cast<double>(engine()) / kMost - 1);
  };
  const bool isFar = seed >= kFarSeeds;
  const double all = factor(isFar ? 0.35 : 0.12);
  const std::uint64_t leaves = isFar ? 3 + engine() % 14 : 16; // one of this many is removed
  tree::KvTree similar;
  std::vector<int> newIndex(tree.nodes().size(), -1);
  bool isFirstLeaf = true;
  for (int node = tree.firstRoot(); node >= 0; node = tree.nextInPreorder(node)) {
    const tree::Node &own = tree.nodes()[static_cast<std::size_t>(node)];
    const bool isLeaf = own.firstChild < 0;
    const bool goes = engine() % leaves == 0 && isLeaf && !isFirstLeaf;
    isFirstLeaf = isFirstLeaf && !isLeaf;
    const double tokens = own.tokens * all * factor(0.1);
    if (goes)
      continue;
    const int parent = own.parent < 0 ? -1 : newIndex[static_cast<std::size_t>(own.parent)];
    const auto added = similar.addNode(
        parent, own.tokens <= 1 ? own.tokens : std::max(1, static_cast<int>(std::lround(tokens))));
    if (!added) // longer than a node may be
      return tree;
    newIndex[static_cast<std::size_t>(node)] = *added;
  }
  for (const tree::Query &query : tree.queries()) {
    const int node = newIndex[static_cast<std::size_t>(query.node)];
    if (node < 0)
      continue;
    std::optional<int> position;
    if (query.position != tree::Query::kWhole) {
      const std::int64_t before = tree.nodes()[static_cast<std::size_t>(query.node)].tokens;
      const std::int64_t now = similar.nodes()[static_cast<std::size_t>(node)].tokens;
      position = static_cast<int>(before > 0 ? query.position * now / before : 0);
    }
    if (!similar.addQuery(node, position))
      return tree;
  }
  return similar;
}

} // namespace deft::workload
