#include "tests/gpu/random/History.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace deft::gpu_test {

using support::Result;
using tree::KvTree;

namespace {

/// How many tokens the leaf has that no query inside of it needs.
int mostLess(const KvTree &tree, int leaf) {
  int needed = 0;
  for (const tree::Query &query : tree.queries())
    if (query.node == leaf)
      needed = std::max(needed, query.position);
  return tree.nodes()[static_cast<std::size_t>(leaf)].tokens - std::max(needed, 0);
}

/// The same nodes in the same places, whose leaves have so many tokens less.
Result<KvTree> shortened(const KvTree &tree, const std::vector<int> &less) {
  KvTree shorter;
  for (std::size_t n = 0; n < less.size(); ++n) {
    const tree::Node &node = tree.nodes()[n];
    if (auto added = shorter.addNode(node.parent, node.tokens - less[n], node.location); !added)
      return added.error();
  }
  if (auto set = shorter.setQueries(tree.queries()); !set)
    return set.error();
  return shorter;
}

} // namespace

Result<int> planThroughHistory(Random &random, const KvTree &tree, const plan::VariantFacts &facts,
                               const config::Config &config, int blocks, plan::Plan &plan) {
  constexpr int kMostSteps = 4, kMostOfStep = 5;
  std::vector<int> less(tree.nodes().size());
  const bool readGrow = random.oneIn(2); // of masks whose ends move no plan follows these
  for (std::size_t n = 0; n < less.size(); ++n) {
    const int node = static_cast<int>(n);
    const bool isRead = std::any_of(tree.queries().begin(), tree.queries().end(),
                                    [&](const tree::Query &query) { return query.node == node; });
    if (tree.nodes()[n].firstChild < 0 && (readGrow || !isRead))
      less[n] = std::min(random.below(kMostSteps * kMostOfStep + 1), mostLess(tree, node));
  }
  auto grown = shortened(tree, less);
  if (!grown)
    return grown.error();
  plan::Planner planner;
  if (auto made = planner.make(*grown, facts, config, blocks, plan); !made)
    return made.error();
  int inPlace = 0;
  while (std::any_of(less.begin(), less.end(), [](int left) { return left > 0; })) {
    for (std::size_t n = 0; n < less.size(); ++n) {
      const int more = std::min(less[n], random.below(kMostOfStep + 1));
      if (more == 0)
        continue;
      if (auto appended = grown->append(static_cast<int>(n), more); !appended)
        return appended.error();
      less[n] -= more;
    }
    if (planner.advance(*grown, plan) == plan::Advance::Done)
      ++inPlace;
    else if (auto made = planner.make(*grown, facts, config, blocks, plan); !made)
      return made.error();
  }
  return inPlace;
}

} // namespace deft::gpu_test
