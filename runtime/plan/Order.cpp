#include "runtime/plan/Order.h"

#include <algorithm>

namespace deft::plan {

namespace {

void turnRuns(const abi::Item &item, Plan &plan) {
  const auto begin = plan.runs.begin() + item.runBegin;
  std::reverse(begin, begin + item.runCount);
  int tokens = 0;
  for (auto run = begin; run != begin + item.runCount; ++run) {
    run->begin = tokens;
    tokens += run->tokens;
  }
}

} // namespace

void turnEveryOtherItem(Plan &plan) {
  for (std::size_t i = 1; i < plan.items.size(); i += 2)
    turnRuns(plan.items[i], plan);
  // Tails of one item stand together, in the order of its runs.
  for (auto tail = plan.tails.begin(); tail != plan.tails.end();) {
    const int own = tail->item;
    const auto end =
        std::find_if(tail, plan.tails.end(), [own](const Plan::Tail &other) { return other.item != own; });
    if (own % 2 != 0) {
      const abi::Item &item = plan.items[static_cast<std::size_t>(own)];
      for (auto one = tail; one != end; ++one)
        one->run = item.runBegin + (item.runBegin + item.runCount - 1 - one->run);
      std::reverse(tail, end);
    }
    tail = end;
  }
}

} // namespace deft::plan
