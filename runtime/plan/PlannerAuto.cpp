#include "runtime/plan/Planner.h"

#include "runtime/plan/AgainPrice.h"
#include "runtime/plan/RoundedChunk.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

/// The choices of a planner if the config leaves the partition or the chunk open.
namespace deft::plan {

using support::Result;

namespace {

/// Narrower tiles replace the widest ones only if they have no partials and the model promises at most this
/// share of the time. A smaller gain is within the average error of its prices.
constexpr double kClearly = 0.9;

/// Items that are cut by price must promise at most this share of the time of those cut by tokens, both
/// spread. If only they merge, kClearly applies (docs/kernels.md#near-ties).
constexpr double kByPrice = 0.97;

/// Whether the chunk determines the tiles; otherwise only how they are cut.
bool isTiledByChunk(spec::Partition partition) {
  return partition != spec::Partition::Union && partition != spec::Partition::NodeChunk &&
         partition != spec::Partition::Query;
}

} // namespace

/// Here and below, the view must be in the tree's own order.
Result<void> Planner::makeAuto(const tree::KvTree &tree, const VariantFacts &facts,
                               const config::Config &config, int blocks, Plan &plan) {
  const std::uint64_t key = classOf(view_, facts, config, blocks);
  ChoiceOfClass *found = auto_.find(key);
  Made made;
  if (!found) {
    const Result<Made> chosen = chooseAuto(tree, facts, config, blocks, plan);
    if (!chosen)
      return chosen.error();
    made = *chosen;
    found = &auto_.remember(key, made.choice);
  }
  lastChoice_ = found->choice;
  if (made.isThere) {
    unionRows_ = made.unionRows;
    areRowsClear_ = made.areRowsClear;
    found->unionRows = areRowsClear_ ? unionRows_ : 0;
    return {};
  }
  if (found->unionRows > 0) { // narrower tiles made no partials for earlier trees, but may for this one
    unionRows_ = found->unionRows;
    if (auto once = makeOnce(lastChoice_, tree, facts, config, blocks, plan);
        !once || unionRows_ == config::mostRows(config) || plan.partialSlots == 0)
      return once;
  }
  auto again = makeAs(lastChoice_, tree, facts, config, blocks, plan);
  found->unionRows = areRowsClear_ ? unionRows_ : 0;
  return again;
}

/// Skips plans that are certainly more expensive, by bounds for all plans of a partition, and then by bounds
/// from its tiles. Most candidates end there.
Result<Planner::Made> Planner::chooseAuto(const tree::KvTree &tree, const VariantFacts &facts,
                                          const config::Config &config, int blocks, Plan &plan) {
  std::optional<Made> best;
  double least = 0; // as a rank
  Result<void> lastError;
  std::size_t mostRuns = 0;
  std::optional<Choice> tilesAtHand;
  bool isMoved = false; // `greedy` has reordered the view and its leaves
  std::optional<std::array<double, kAutoChunks.size()>> chunkRanks; // lower bounds, for `union`
  model_.set(facts, config, ofTree(config.cost, view_, facts, config, options_.families), blocks,
             options_.families);
  const bool isSpread =
      config.order == config::Order::FromRoot && hasLastingBlocks(config, options_.families);
  struct {
    double blockUs = 0;
    bool isMerged = false;
    double rank = 0;     // with its items spread
    double least = 0;    // the same if all blocks had equal work
  } byTokens;            // the best plan that is not cut by price
  double spreadRank = 0; // of the best plan so far
  const auto isTooDear = [&](double rank) { return best && rank > kWorthTrying * least; };
  /// Makes a plan; false if the tiles are too expensive for one.
  const auto make = [&](const Choice &choice) -> Result<bool> {
    unionRows_ = config::mostRows(config);
    areRowsClear_ = false;
    if (std::exchange(isMoved, false))
      read(tree, facts, visible_.standIns());
    // For most partitions, all chunks have the same tiles.
    if (const Choice tiled{choice.partition, isTiledByChunk(choice.partition) ? choice.chunkTokens : 0};
        tilesAtHand != tiled) {
      tilesAtHand.reset();
      if (auto prepared = prepareTiles(choice, facts, config, blocks); !prepared)
        return prepared.error();
      tilesAtHand = tiled;
      mostRuns = std::max(mostRuns, tiles_.runCount());
      bounds_.set(tiles_, view_, model_);
    }
    if (choice.waves == 0 && isTooDear(bounds_.leastRank(chunkOf(choice, facts, config, blocks))))
      return false;
    if (best)
      best->isThere = false;
    if (auto cut = cutTiles(choice, tree, facts, config, blocks, plan); !cut)
      return cut.error();
    return true;
  };
  const auto makeFirst = [&](const Choice &choice) -> Result<bool> { // with the tiles that are best for it
    if (auto made = makeAs(choice, tree, facts, config, blocks, plan); !made)
      return made.error();
    mostRuns = std::max(mostRuns, plan.runs.size());
    leaves_ = view_.leaves;
    return true;
  };
  /// Computed while the view is in its own order: most searches then need no other view.
  const auto boundChunks = [&]() {
    unionRows_ = config::mostRows(config);
    if (tiledRows_ != unionRows_ && !prepareTiles(best->choice, facts, config, blocks))
      return;
    tilesAtHand = best->choice;
    bounds_.set(tiles_, view_, model_);
    chunkRanks.emplace();
    for (std::size_t i = 0; i < kAutoChunks.size(); ++i)
      (*chunkRanks)[i] = bounds_.leastRank(roundedChunk(kAutoChunks[i]));
  };
  const auto compare = [&](const Choice &choice) {
    const PlanCost cost = model_.estimate(plan);
    const double rank = rankOf(cost.microseconds, config.cost, plan);
    if (choice.waves == 0 && best && rank >= least)
      return;
    const double spread = isSpread ? rankOf(spreadUs(facts, blocks, cost, plan), config.cost, plan) : 0;
    const bool isMerged = plan.partialSlots > 0;
    if (choice.waves == 0) {
      least = rank;
      byTokens = {cost.blockUs, isMerged, spread, rankOf(cost.withFullest(0), config.cost, plan)};
    } else if (const double most = (isMerged && !byTokens.isMerged ? kClearly : kByPrice) * byTokens.rank;
               spread >= (best->choice.waves > 0 ? std::min(most, spreadRank) : most)) {
      return;
    }
    best = {choice, unionRows_, areRowsClear_, true};
    spreadRank = spread;
  };
  const auto tryOut = [&](const Choice &choice) {
    const Result<bool> made = best ? make(choice) : makeFirst(choice);
    if (!made)
      lastError = made.error();
    else if (*made)
      compare(choice);
    if (choice.partition == spec::Partition::Greedy && greedy_.hasMoved()) {
      isMoved = true;
      tilesAtHand.reset();
      if (best && best->choice == choice)
        best->isThere = false;
    }
  };
  // In deep trees some partitions are a thousand times larger than others.
  constexpr std::int64_t kMostTriedRuns = 1 << 22;
  const LeastWork work = leastWorkOf(view_, model_,
                                     config.chunkTokens > 0 ? roundedChunk(config.chunkTokens)
                                                            : flattenChunk(view_, facts.kvHeads, blocks));
  for (const spec::Partition partition : kAutoPartitions) {
    const LowerBound possible = lowerBoundOf(partition, work, model_);
    if (!best || (!isTooDear(possible.rank(model_)) && possible.runs <= kMostTriedRuns))
      tryOut({partition, config.chunkTokens});
    if (best && !chunkRanks && best->choice == Choice{spec::Partition::Union, 0} && best->isThere)
      boundChunks();
  }
  if (!best)
    return lastError.error();
  // A plan of this size takes a tenth of a second, so makeAs chooses its chunk.
  constexpr std::size_t kMostChunkedRuns = 1 << 20;
  if (config.chunkTokens == 0 && mostRuns <= kMostChunkedRuns) {
    const spec::Partition partition = best->choice.partition;
    for (std::size_t i = 0; i < kAutoChunks.size(); ++i)
      if (partition != spec::Partition::Union || !chunkRanks || !isTooDear((*chunkRanks)[i]))
        tryOut({partition, kAutoChunks[i]});
  }
  // Without partials, only more even work can save anything.
  const bool mayGain = byTokens.isMerged || byTokens.least < kClearly * byTokens.rank;
  if (isSpread && mayGain && config.chunkTokens == 0 && byTokens.blockUs >= ItemSpread::kLeastUs &&
      mostRuns <= kMostChunkedRuns) {
    const spec::Partition partition = best->choice.partition;
    for (const int waves : kAutoWaves)
      tryOut({spec::Partition::Union, 0, waves});
    if (partition == spec::Partition::Greedy || partition == spec::Partition::NodeChunk)
      for (const int waves : kAutoWaves)
        tryOut({partition, 0, waves});
  }
  if (isMoved && best->isThere)
    view_.leaves.swap(leaves_); // nothing else of the view is needed from here on
  else if (isMoved)
    read(tree, facts, visible_.standIns());
  return *best;
}

/// The widest tiles read least. But if they are so few that most blocks would be idle, try narrower ones.
Result<void> Planner::narrowWhereIdle(const Choice &choice, const tree::KvTree &tree,
                                      const VariantFacts &facts, const config::Config &config, int blocks,
                                      Plan &plan) {
  if (choice.chunkTokens > 0 || choice.waves > 0 || plan.items.empty() ||
      2 * std::ssize(plan.items) * facts.kvHeads > blocks)
    return {};
  model_.set(facts, config, ofTree(config.cost, view_, facts, config, options_.families), blocks,
             options_.families);
  const double widestUs = model_.estimate(plan).microseconds;
  double leastUs = std::numeric_limits<double>::infinity(); // of the narrower ones
  const int widest = unionRows_;
  int best = widest, made = widest;
  for (const int rows : {64, 16}) {
    if (rows >= widest || rows < facts.ratio)
      continue;
    unionRows_ = rows;
    if (auto prepared = prepareTiles(choice, facts, config, blocks); !prepared)
      return prepared;
    bounds_.set(tiles_, view_, model_);
    // Make no plan of tiles that certainly need a merge or cost more than the widest ones.
    const LowerBound possible = bounds_.least(chunkOf(choice, facts, config, blocks));
    if (possible.isMerged)
      continue;
    if (possible.us > widestUs) {
      leastUs = std::min(leastUs, possible.us);
      continue;
    }
    if (auto cut = cutTiles(choice, tree, facts, config, blocks, plan); !cut)
      return cut;
    made = rows;
    if (const double us = model_.estimate(plan).microseconds; plan.partialSlots == 0 && us < leastUs) {
      best = rows;
      leastUs = us;
    }
  }
  const bool isPromise = leastUs < kClearly * widestUs;
  areRowsClear_ = isPromise || leastUs > widestUs;
  unionRows_ = isPromise ? best : widest;
  return unionRows_ == made ? Result<void>() : makeOnce(choice, tree, facts, config, blocks, plan);
}

} // namespace deft::plan
