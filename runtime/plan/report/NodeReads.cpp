#include "runtime/plan/report/NodeReads.h"

#include <algorithm>
#include <numeric>

namespace deft::plan {

std::vector<NodeReads> nodeReads(const PlanReport &report) {
  const RunList &runs = report.plan.runs;
  std::vector<NodeReads> reads(report.tree.nodes().size());
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return runs[a].location < runs[b].location; });
  int end = 0; // past the last location that was read; nodes do not share locations
  for (const std::size_t r : order) {
    const int begin = runs[r].location, until = begin + runs[r].tokens;
    const int fresh = std::max(0, until - std::max(begin, end));
    NodeReads &node = reads[static_cast<std::size_t>(report.nodeOfRun[r])];
    node.first += fresh;
    node.again += runs[r].tokens - fresh;
    end = std::max(end, until);
  }
  return reads;
}

} // namespace deft::plan
