#include "tuner/search/PlanModel.h"

#include "compiler/kernels/Occupancy.h"

#include <cmath>
#include <sstream>

namespace deft::search {
namespace {

/// All inputs of the model's answer, apart from the trees.
std::string keyOf(const config::Config &config, int blocks) {
  std::ostringstream key;
  const config::CostCoefficients &cost = config.cost;
  key << static_cast<int>(config.partition) << ' ' << config.chunkTokens << ' ' << blocks << ' '
      << cost.itemUs << ' ' << cost.againGBs << ' ' << cost.partialGBs;
  for (const config::PhaseConfig &phase : config.phases)
    key << ' ' << phase.rowsAbove << ' ' << static_cast<int>(phase.family) << ' ' << phase.tileQ << ' '
        << phase.tileKv;
  return key.str();
}

} // namespace

std::optional<double> PlanModel::microseconds(const space::Point &point) {
  return microsecondsOf(space_.configOf(point));
}

std::optional<double> PlanModel::microsecondsOf(const config::Config &config) {
  const int blocks =
      kernels::estimateBlocks(space_.kernel(), config, space_.target(), units_, space_.families());
  const auto [found, isNew] = known_.try_emplace(keyOf(config, blocks));
  if (!isNew)
    return found->second;
  double logSum = 0;
  for (const tree::KvTree *tree : trees_) {
    if (auto made = planner_.make(*tree, facts_, config, blocks, plan_); !made)
      return std::nullopt;
    // A preset's prices decide which plan is made; the machine's prices give its cost.
    model_.set(facts_, config, space_.cost(), blocks, space_.families());
    logSum += std::log(model_.estimate(plan_).microseconds);
  }
  found->second = std::exp(logSum / static_cast<double>(trees_.size()));
  return found->second;
}

} // namespace deft::search
