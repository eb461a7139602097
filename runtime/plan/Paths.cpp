#include "runtime/plan/Paths.h"

#include <algorithm>

namespace deft::plan {

namespace {

/// Calls `take` with each (query in plan order, run, number of the run's first tokens that it sees).
template <class Take> void forEachPart(const Plan &plan, const Take &take) {
  for (const abi::Item &item : plan.items)
    for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
      const abi::Run &run = plan.runs[static_cast<std::size_t>(r)];
      for (int q = run.queryBegin; q < run.queryEnd; ++q) {
        // Token t of a slope is seen by queries from queryBegin + t on.
        const int seen = run.slope ? std::min(run.tokens, q - run.queryBegin + 1) : run.tokens;
        if (seen > 0)
          take(item.queryBegin + q, run, seen);
      }
    }
}

} // namespace

void Paths::read(const Plan &plan) {
  const auto queries = static_cast<std::size_t>(plan.queryCount());
  const auto callerOf = [&](int planned) {
    return static_cast<std::size_t>(plan.callerIndex[static_cast<std::size_t>(planned)]);
  };
  queryPos_.resize(queries);
  longest_ = 0;
  for (std::size_t q = 0; q < queries; ++q) {
    queryPos_[static_cast<std::size_t>(plan.callerIndex[q])] = plan.queryPos[q];
    longest_ = std::max(longest_, plan.queryPos[q] + 1);
  }

  begin_.assign(queries + 1, 0);
  forEachPart(plan, [&](int planned, const abi::Run &, int) { ++begin_[callerOf(planned) + 1]; });
  for (std::size_t q = 0; q < queries; ++q)
    begin_[q + 1] += begin_[q];
  stretches_.resize(static_cast<std::size_t>(begin_[queries]));
  next_.assign(begin_.begin(), begin_.end() - 1);
  forEachPart(plan, [&](int planned, const abi::Run &run, int seen) {
    stretches_[static_cast<std::size_t>(next_[callerOf(planned)]++)] = {run.position, seen, run.location,
                                                                        run.depth};
  });
  const auto isBefore = [](const PathStretch &a, const PathStretch &b) { return a.position < b.position; };
  for (std::size_t q = 0; q < queries; ++q)
    std::sort(stretches_.begin() + begin_[q], stretches_.begin() + begin_[q + 1], isBefore);
}

int Paths::firstAmbiguous() const {
  for (int query = 0; query < queryCount(); ++query) {
    const std::span<const PathStretch> path = of(query);
    for (std::size_t s = 1; s < path.size(); ++s)
      if (path[s - 1].position + path[s - 1].tokens > path[s].position)
        return query;
  }
  return -1;
}

} // namespace deft::plan
