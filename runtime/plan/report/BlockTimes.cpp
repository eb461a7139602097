#include "runtime/plan/report/BlockTimes.h"

#include <algorithm>

namespace deft::plan {

double BlockTimes::busiestUs() const {
  return loadUs.empty() ? 0 : *std::max_element(loadUs.begin(), loadUs.end());
}

namespace {

BlockTimes ofThreads(const PlanReport &report) {
  BlockTimes times;
  times.unitBegin = report.balance.unitBegin;
  times.units = report.balance.units;
  times.loadUs = report.balance.load;
  times.launches.resize(report.plan.phases.size(), {0, report.balance.mostLoad});
  return times;
}

} // namespace

BlockTimes blockTimes(const PlanReport &report) {
  if (!report.isOfGpu())
    return ofThreads(report);
  BlockTimes times;
  const auto blocks = static_cast<std::size_t>(std::max(report.blocks, 1));
  times.loadUs.assign(blocks, 0);
  std::vector<std::vector<int>> units(blocks);
  double begin = 0;
  for (const Plan::Phase &phase : report.plan.phases) {
    const int heads = report.facts.kvHeads;
    std::vector<double> load(std::min(blocks, static_cast<std::size_t>(phase.itemCount) * heads), 0);
    for (int i = 0; i < phase.itemCount; ++i) {
      const int item = phase.itemBegin + i;
      const double us = report.model.unitUs(report.plan, report.plan.items[static_cast<std::size_t>(item)]);
      for (int head = 0; head < heads; ++head) {
        const std::size_t block = (static_cast<std::size_t>(i) * heads + head) % blocks;
        units[block].push_back(item * heads + head);
        load[block] += us;
      }
    }
    double longest = 0;
    for (std::size_t block = 0; block < load.size(); ++block) {
      times.loadUs[block] += load[block];
      longest = std::max(longest, load[block]);
    }
    times.launches.push_back({begin, begin + longest});
    begin += longest;
  }
  times.unitBegin = {0};
  for (const std::vector<int> &ofBlock : units) {
    times.units.insert(times.units.end(), ofBlock.begin(), ofBlock.end());
    times.unitBegin.push_back(static_cast<int>(times.units.size()));
  }
  return times;
}

} // namespace deft::plan
