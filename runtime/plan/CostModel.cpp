#include "runtime/plan/CostModel.h"

#include "runtime/plan/Slope.h"

#include <algorithm>

namespace deft::plan {
namespace {

int roundUp(int value, int step) { return (value + step - 1) / step * step; }

/// Partials of a row that the merge has on its way at a time.
constexpr int kSlotsAtOnce = 8;
/// What making the keys of a dealt tile takes of what those of others do: each warp makes its own, and waits
/// for no other. Estimated from F9_08, F9_10 and F9_14 on an H200, like keyUs.
constexpr double kDealtKeys = 0.4;

} // namespace

void CostModel::set(const VariantFacts &facts, const config::Config &config,
                    const config::CostCoefficients &cost, int blocks, kernels::Families families) {
  cost_ = cost;
  ratio_ = facts.ratio;
  queriesPerTile_ = std::max(1, config::mostRows(config) / facts.ratio);
  kvHeads_ = facts.kvHeads;
  blocks_ = std::max(blocks, 1);
  share_ = kvHeads_ / blocks_;
  tokenBytes_ = static_cast<double>(facts.kvHeads) * facts.tensors.cacheBytes();
  const double heads = static_cast<double>(facts.ratio) * facts.kvHeads;
  slotBytes_ = 2.0 * heads * static_cast<double>(partialRowBytes(facts));
  outputBytes_ = heads * (facts.tensors.q.rowBytes() + facts.tensors.out.rowBytes());
  pairGflop_ = 1e-9 * facts.tensors.pairFlops();

  steps_.resize(static_cast<std::size_t>(queriesPerTile_) + 1);
  for (int queries = 1; queries <= queriesPerTile_; ++queries) {
    const int rows = queries * facts.ratio;
    const config::PhaseConfig &phase = config.phases[config::phaseFor(config, rows)];
    const kernels::Family &family = kernels::familyOf(phase, families);
    const int padded = cost.rowStep > 0 ? roundUp(rows, cost.rowStep) : family.paddedRows(phase, rows);
    const kernels::TileCost tile = family.tileCost(phase, padded, cost);
    Step &step = steps_[static_cast<std::size_t>(queries)];
    step.tokens = cost.tokenStep > 0 ? cost.tokenStep : phase.tileKv;
    step.gflop = pairGflop_ * padded * step.tokens;
    step.keyUs = facts.makesKeys ? cost.keyUs : 0;
    step.us = cost.stepUs * tile.stepShare + step.gflop / tile.gflops * 1e6 + step.keyUs;
    step.itemUs = cost.itemUs * tile.itemShare;
    step.firstGroup = step.secondGroup = 0;
    if (family.groupRows > 0 && rows > family.groupRows) {
      step.firstGroup = (family.groupRows - 1) / facts.ratio + 1;
      step.secondGroup = family.groupRows / facts.ratio;
    }
  }
}

double CostModel::unitUs(const Plan &plan, const abi::Item &item) const {
  const Step &step = steps_[static_cast<std::size_t>(std::min(item.queryCount, queriesPerTile_))];
  const double steps = stepsOf(plan, item, step) - savedSteps(item, step);
  const double us = step.itemUs + item.runCount * cost_.runUs + steps * step.us -
                    (1 - kDealtKeys) * item.dealtTiles * step.keyUs;
  return cost_.maskUs > 0 ? us + maskedTokens(plan, item) / step.tokens * cost_.maskUs : us;
}

int CostModel::stepsOf(const Plan &plan, const abi::Item &item, const Step &step) const {
  int tokens = item.tokens;
  if (step.firstGroup > 0 && item.runCount > 1) {
    int first = 0, second = 0;
    for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
      const abi::Run &run = plan.runs[static_cast<std::size_t>(r)];
      first += run.queryBegin < step.firstGroup ? tokensSeen(run, step.firstGroup - 1) : 0;
      second += run.queryEnd > step.secondGroup ? run.tokens : 0;
    }
    tokens = std::max(first, second);
  }
  return roundUp(tokens, step.tokens) / step.tokens;
}

double CostModel::savedSteps(const abi::Item &item, const Step &step) const {
  return cost_.turnStep * std::min(item.dealtTiles, roundUp(item.commonTokens, step.tokens) / step.tokens);
}

double CostModel::maskedTokens(const Plan &plan, const abi::Item &item) const {
  // Of several groups, those that see nothing of a step are passed over: worth what masks cost the others.
  // And what some tokens' readers have in common, which is what joined them, is worth more.
  if (cost_.rowStep > 0 && item.queryCount * ratio_ > cost_.rowStep)
    return 0;
  for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
    const abi::Run &run = plan.runs[static_cast<std::size_t>(r)];
    if (run.queryEnd - run.queryBegin == item.queryCount && run.slope == 0)
      return 0;
  }
  return item.tokens;
}

PlanCost CostModel::estimate(const Plan &plan) const {
  PlanCost total;
  double itemTokens = 0, units = 0, pairs = 0;
  for (const abi::Item &item : plan.items) {
    const Step &step = steps_[static_cast<std::size_t>(std::min(item.queryCount, queriesPerTile_))];
    const int count = roundUp(item.tokens, step.tokens) / step.tokens;
    const double us = unitUs(plan, item);
    total.blockUs += us * share_;
    total.longestUs = std::max(total.longestUs, us);
    total.paddedGflop += count * step.gflop * kvHeads_;
    itemTokens += item.tokens;
    ++units;
  }
  // Block b of n takes the units b, b + n, ... of a launch, heaviest first: the first block has most to do.
  const auto heads = static_cast<std::int64_t>(kvHeads_);
  for (const Plan::Phase &phase : plan.phases)
    for (std::int64_t unit = 0; unit < phase.itemCount * heads; unit += blocks_)
      total.fullestUs += unitUs(plan, plan.items[static_cast<std::size_t>(phase.itemBegin + unit / heads)]);
  for (const abi::Run &run : plan.runs)
    pairs += static_cast<double>(pairsOf(run));
  total.units = static_cast<std::int64_t>(units * kvHeads_);
  total.usefulGflop = pairs * ratio_ * pairGflop_ * kvHeads_;
  total.cacheBytes = static_cast<double>(plan.readTokens) * tokenBytes_;
  total.againBytes = (itemTokens - static_cast<double>(plan.readTokens)) * tokenBytes_;
  total.queryBytes = plan.queryCount() * outputBytes_;
  total.partialBytes = plan.partialSlots * slotBytes_;
  const double memoryUs = (total.cacheBytes + total.queryBytes) / (cost_.cacheGBs * 1e3) +
                          total.againBytes / (cost_.againGBs * 1e3) +
                          total.partialBytes / (cost_.partialGBs * 1e3);
  int mostSlots = 0;
  if (cost_.slotUs > 0)
    for (std::size_t i = 0; i + 1 < plan.mergeBegin.size(); ++i)
      mostSlots = std::max(mostSlots, plan.mergeBegin[i + 1] - plan.mergeBegin[i]);
  const double mergeUs =
      plan.mergeQuery.empty() ? 0 : cost_.mergeUs + std::max(0, mostSlots - kSlotsAtOnce) * cost_.slotUs;
  total.workUs = memoryUs + total.blockUs;
  total.microseconds = memoryUs + std::max(total.blockUs, total.fullestUs) + cost_.launchUs + mergeUs;
  return total;
}

} // namespace deft::plan
