#include "runtime/plan/Balance.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace deft::plan {

std::vector<double> itemCosts(const Plan &plan) {
  constexpr double kStartTokens = 48;
  std::vector<double> costs;
  costs.reserve(plan.items.size());
  for (const abi::Item &item : plan.items)
    costs.push_back(kStartTokens + item.tokens);
  return costs;
}

Balance balance(const Plan &plan, std::span<const double> costs, int kvHeads, int blocks) {
  Balance result;
  const std::size_t blockCount = static_cast<std::size_t>(std::max(blocks, 1));
  std::vector<int> order(plan.items.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return costs[static_cast<std::size_t>(a)] > costs[static_cast<std::size_t>(b)];
  });

  using Block = std::pair<double, int>;
  std::priority_queue<Block, std::vector<Block>, std::greater<>> least;
  for (std::size_t i = 0; i < blockCount; ++i)
    least.emplace(0.0, static_cast<int>(i));
  const std::size_t unitCount = plan.items.size() * static_cast<std::size_t>(kvHeads);
  std::vector<std::pair<int, int>> placed; // (block, unit), in the order in which units are assigned
  placed.reserve(unitCount);
  result.load.assign(blockCount, 0);
  for (const int item : order)
    for (int head = 0; head < kvHeads; ++head) {
      const auto [load, block] = least.top();
      least.pop();
      const double after = load + costs[static_cast<std::size_t>(item)];
      least.emplace(after, block);
      result.load[static_cast<std::size_t>(block)] = after;
      placed.emplace_back(block, item * kvHeads + head);
    }

  result.unitBegin.assign(blockCount + 1, 0);
  for (const auto &[block, unit] : placed)
    ++result.unitBegin[static_cast<std::size_t>(block) + 1];
  std::partial_sum(result.unitBegin.begin(), result.unitBegin.end(), result.unitBegin.begin());
  std::vector<int> next(result.unitBegin.begin(), result.unitBegin.end() - 1);
  result.units.resize(unitCount);
  for (const auto &[block, unit] : placed)
    result.units[static_cast<std::size_t>(next[static_cast<std::size_t>(block)]++)] = unit;
  result.mostLoad = *std::max_element(result.load.begin(), result.load.end());
  result.meanLoad =
      std::accumulate(result.load.begin(), result.load.end(), 0.0) / static_cast<double>(blockCount);
  return result;
}

} // namespace deft::plan
