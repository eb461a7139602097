#include "runtime/plan/CostModel.h"

#include "runtime/plan/Slope.h"

#include <algorithm>
#include <limits>

namespace deft::plan {
namespace {

int roundUp(int value, int step) { return (value + step - 1) / step * step; }

/// The partials of a row that the merge loads at the same time.
constexpr int kSlotsAtOnce = 8;

} // namespace

void CostModel::set(const VariantFacts &facts, const config::Config &config,
                    const config::CostCoefficients &cost, int blocks, kernels::Families families) {
  cost_ = cost;
  ratio_ = facts.ratio;
  queriesPerTile_ = std::max(1, config::mostRows(config) / facts.ratio);
  kvHeads_ = facts.kvHeads;
  blocks_ = std::max(blocks, 1);
  share_ = kvHeads_ / blocks_;
  tokenBytes_ = static_cast<double>(facts.tokenBytes());
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
  findLeast();
}

/// Prices may fall for larger tiles, if another kernel takes these.
void CostModel::findLeast() {
  least_.resize(steps_.size());
  pairTokenUs_ = std::numeric_limits<double>::infinity();
  hasGroups_ = false;
  Least least{pairTokenUs_, pairTokenUs_};
  for (std::size_t queries = 1; queries < steps_.size(); ++queries) {
    const Step &step = steps_[queries];
    const double tokenUs = step.us / step.tokens;
    least.itemUs = std::min(least.itemUs, step.itemUs);
    least.tokenUs = std::min(least.tokenUs, tokenUs);
    least_[queries] = least;
    // If two groups of warps have tokens of their own, a token costs at least half of a full step's share.
    const double perPair = tokenUs / static_cast<double>(queries);
    pairTokenUs_ = std::min(pairTokenUs_, step.firstGroup > 0 ? perPair / 2 : perPair);
    hasGroups_ |= step.firstGroup > 0;
  }
  least_[0] = least_[1];
}

double CostModel::leastCoverUs(std::int64_t queries) const {
  const std::int64_t tiles = (queries + queriesPerTile_ - 1) / queriesPerTile_;
  const double wholeTileUs = least_.back().tokenUs * (hasGroups_ ? 0.5 : 1.0);
  return std::max(static_cast<double>(tiles) * wholeTileUs, static_cast<double>(queries) * pairTokenUs_);
}

double CostModel::leastUnitUs(std::span<const Segment> runs, int tokens) const {
  const int begin = runs.front().queryBegin;
  int end = begin;
  for (const Segment &run : runs)
    end = std::max(end, run.queryEnd);
  const Step &step = steps_[static_cast<std::size_t>(std::min(end - begin, queriesPerTile_))];
  int most = tokens;
  if (step.firstGroup > 0 && runs.size() > 1) {
    int first = 0, second = 0;
    for (const Segment &run : runs) {
      first += run.queryBegin - begin < step.firstGroup ? tokensSeen(run, begin + step.firstGroup - 1) : 0;
      second += run.queryEnd - begin > step.secondGroup ? run.tokens : 0;
    }
    most = std::max(first, second);
  }
  const int steps = roundUp(most, step.tokens) / step.tokens;
  return step.itemUs + static_cast<double>(runs.size()) * cost_.runUs + steps * step.us;
}

double CostModel::unitUs(const Plan &plan, const abi::Item &item) const {
  const Step &step = steps_[static_cast<std::size_t>(std::min(item.queryCount, queriesPerTile_))];
  const double steps = stepsOf(plan, item, step) - savedSteps(item, step);
  const double us = step.itemUs + item.runCount * cost_.runUs + steps * step.us -
                    (1 - cost_.dealtKeys) * item.dealtTiles * step.keyUs;
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
  // With several groups, those that see nothing of a step skip it, which compensates for the masks of the
  // others. And if all rows see some tokens, which is why they share a tile, these outweigh masks.
  if (cost_.rowStep > 0 && item.queryCount * ratio_ > cost_.rowStep)
    return 0;
  for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
    const abi::Run &run = plan.runs[static_cast<std::size_t>(r)];
    if (run.queryEnd - run.queryBegin == item.queryCount && run.slope == 0)
      return 0;
  }
  return item.tokens;
}

double busiestUs(std::span<const double> us, int kvHeads, int blocks, std::vector<double> &loads) {
  loads.assign(static_cast<std::size_t>(blocks), 0);
  std::size_t block = 0;
  for (const double price : us)
    for (int head = 0; head < kvHeads; ++head) {
      loads[block] += price;
      block = block + 1 == loads.size() ? 0 : block + 1;
    }
  return *std::max_element(loads.begin(), loads.end());
}

double CostModel::busiestUs(const Plan &plan, const Plan::Phase &phase) const {
  std::vector<double> us, loads;
  for (int i = phase.itemBegin; i < phase.itemBegin + phase.itemCount; ++i)
    us.push_back(unitUs(plan, plan.items[static_cast<std::size_t>(i)]));
  return plan::busiestUs(us, static_cast<int>(kvHeads_), blocks_, loads);
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
  // Block b of n takes units b, b + n, ... of a launch. Heaviest first, the first block has the most work.
  const auto heads = static_cast<std::int64_t>(kvHeads_);
  for (const Plan::Phase &phase : plan.phases) {
    if (phase.isSpread) {
      total.fullestUs += busiestUs(plan, phase);
      continue;
    }
    for (std::int64_t unit = 0; unit < phase.itemCount * heads; unit += blocks_)
      total.fullestUs += unitUs(plan, plan.items[static_cast<std::size_t>(phase.itemBegin + unit / heads)]);
  }
  for (const abi::Run &run : plan.runs)
    pairs += static_cast<double>(pairsOf(run));
  total.units = static_cast<std::int64_t>(units * kvHeads_);
  total.usefulGflop = pairs * ratio_ * pairGflop_ * kvHeads_;
  total.cacheBytes = static_cast<double>(plan.readTokens) * tokenBytes_;
  total.againBytes = (itemTokens - static_cast<double>(plan.readTokens)) * tokenBytes_;
  total.queryBytes = plan.queryCount() * outputBytes_;
  total.partialBytes = plan.partialSlots * slotBytes_;
  PlanWork work{.itemTokens = itemTokens,
                .readTokens = plan.readTokens,
                .queries = plan.queryCount(),
                .partialSlots = plan.partialSlots,
                .isMerged = !plan.mergeQuery.empty(),
                .blockUs = total.blockUs,
                .fullestUs = total.fullestUs};
  if (cost_.slotUs > 0)
    for (std::size_t i = 0; i + 1 < plan.mergeBegin.size(); ++i)
      work.mostSlots = std::max(work.mostSlots, plan.mergeBegin[i + 1] - plan.mergeBegin[i]);
  total.workUs = memoryUsOf(work) + total.blockUs;
  total.microseconds = microsecondsOf(work);
  return total;
}

double CostModel::memoryUsOf(const PlanWork &work) const {
  const auto read = static_cast<double>(work.readTokens);
  return (read * tokenBytes_ + work.queries * outputBytes_) / (cost_.cacheGBs * 1e3) +
         (work.itemTokens - read) * tokenBytes_ / (cost_.againGBs * 1e3) +
         static_cast<double>(work.partialSlots) * slotBytes_ / (cost_.partialGBs * 1e3);
}

double CostModel::microsecondsOf(const PlanWork &work) const {
  const double mergeUs =
      work.isMerged ? cost_.mergeUs + std::max(0, work.mostSlots - kSlotsAtOnce) * cost_.slotUs : 0;
  return memoryUsOf(work) + std::max(work.blockUs, work.fullestUs) + cost_.launchUs + mergeUs;
}

} // namespace deft::plan
