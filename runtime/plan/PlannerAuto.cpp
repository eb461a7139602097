#include "runtime/plan/Planner.h"

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
  ChoiceOfClass *const found = auto_.find(key);
  if (!found) {
    const Result<Choice> chosen = chooseAuto(tree, facts, config, blocks, plan);
    if (!chosen)
      return chosen.error();
    lastChoice_ = *chosen;
    auto_.remember(key, *chosen).unionRows = areRowsClear_ ? unionRows_ : 0;
    return {};
  }
  lastChoice_ = found->choice;
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
/// from its tiles. Most candidates end there. `plan` always has the best plan so far.
Result<Choice> Planner::chooseAuto(const tree::KvTree &tree, const VariantFacts &facts,
                                   const config::Config &config, int blocks, Plan &plan) {
  struct Best {
    Choice choice;
    int unionRows;
    bool areRowsClear;
    double spreadRank = 0; // with its items spread, if it is cut by price
  };
  std::optional<Best> best;
  double least = 0; // as a rank
  Result<void> lastError;
  std::size_t mostRuns = 0;
  std::optional<Choice> tilesAtHand;
  bool isMoved = false, wasMoved = false; // `greedy` has reordered the view and its leaves
  std::optional<std::array<double, kAutoChunks.size()>> chunkRanks; // lower bounds, for `union`
  setModel(facts, config, blocks);
  struct {
    PlanCost cost;
    bool isMerged = false;
    double spreadRank = 0;
  } byTokens; // the best plan that is not cut by price
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
    const int chunk = limitItems(choice, facts, config, blocks);
    if (choice.waves == 0 && isTooDear(bounds_.leastRank(chunk)))
      return false;
    if (choice.waves > 0) {
      bounds_.set(tiles_, view_, model_); // with the limits of these items
      if (bounds_.leastRank(chunk) >= kByPrice * byTokens.spreadRank) {
        PriceCut::clear(tiles_);
        return false;
      }
    }
    if (auto cut = cutTiles(choice, chunk, tree, facts, config, spare_); !cut)
      return cut.error();
    return true;
  };
  const auto makeFirst = [&](const Choice &choice) -> Result<bool> { // with the tiles that are best for it
    if (auto made = makeAs(choice, tree, facts, config, blocks, plan); !made)
      return made.error();
    mostRuns = std::max(mostRuns, plan.runs.size());
    return true;
  };
  /// Computed while the view is in its own order: most searches then need no other view.
  const auto boundChunks = [&]() {
    tilesAtHand = best->choice;
    bounds_.set(tiles_, view_, model_);
    chunkRanks.emplace();
    // A chunk that cuts as another one does is not tried.
    const bool isWidest = best->unionRows == config::mostRows(config);
    for (std::size_t i = 0; i < kAutoChunks.size(); ++i) {
      const int chunk = roundedChunk(kAutoChunks[i]);
      const bool isKnown = (isWidest && bounds_.areCutAlike(chunk, plan.chunkTokens)) ||
                           (i > 0 && bounds_.areCutAlike(chunk, roundedChunk(kAutoChunks[i - 1])));
      (*chunkRanks)[i] = isKnown ? std::numeric_limits<double>::infinity() : bounds_.leastRank(chunk);
    }
  };
  /// The rank of a plan once its items are spread.
  const auto spreadRank = [&](ItemSpread &spread, const PlanCost &cost, const Plan &made) {
    return rankOf(cost.withFullest(spread.find(model_, facts.kvHeads, blocks, made)), config.cost, made);
  };
  const auto isBest = [&](const Choice &choice, const Plan &made) {
    const PlanCost cost = model_.estimate(made);
    const bool isMerged = made.partialSlots > 0;
    if (choice.waves == 0) {
      const double rank = rankOf(cost.microseconds, config.cost, made);
      if (best && rank >= least)
        return false;
      least = rank;
      byTokens = {cost, isMerged, 0};
      best = {choice, unionRows_, areRowsClear_};
      return true;
    }
    const double rank = spreadRank(spareSpread_, cost, made);
    const double most = (isMerged && !byTokens.isMerged ? kClearly : kByPrice) * byTokens.spreadRank;
    if (rank >= (best->choice.waves > 0 ? std::min(most, best->spreadRank) : most))
      return false;
    best = {choice, unionRows_, areRowsClear_, rank};
    std::swap(spread_, spareSpread_);
    return true;
  };
  const auto tryOut = [&](const Choice &choice) {
    Plan &tried = best ? spare_ : plan;
    if (const Result<bool> made = best ? make(choice) : makeFirst(choice); !made) {
      lastError = made.error();
    } else if (*made && isBest(choice, tried)) {
      leaves_ = view_.leaves;
      if (&tried == &spare_)
        keepSpare(plan);
    }
    if (choice.partition == spec::Partition::Greedy && greedy_.hasMoved()) {
      isMoved = wasMoved = true;
      tilesAtHand.reset();
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
    if (partition == spec::Partition::Union && best && config.chunkTokens == 0)
      boundChunks();
  }
  if (!best)
    return lastError.error();
  // A plan of this size takes a tenth of a second, so makeAs chooses its chunk.
  constexpr std::size_t kMostChunkedRuns = 1 << 20;
  const bool isChunkOpen = config.chunkTokens == 0 && mostRuns <= kMostChunkedRuns;
  if (isChunkOpen) {
    const spec::Partition partition = best->choice.partition;
    for (std::size_t i = 0; i < kAutoChunks.size(); ++i)
      if (partition != spec::Partition::Union || !chunkRanks || !isTooDear((*chunkRanks)[i]))
        tryOut({partition, kAutoChunks[i]});
  }
  const bool isSpread =
      config.order == config::Order::FromRoot && hasLastingBlocks(config, options_.families);
  if (isChunkOpen && isSpread && byTokens.cost.blockUs >= ItemSpread::kLeastUs) {
    const double even = rankOf(byTokens.cost.withFullest(0), config.cost, plan);
    byTokens.spreadRank = spreadRank(spread_, byTokens.cost, plan);
    hasOrder_ = true;
    // Without partials, only more even work can save anything.
    if (byTokens.isMerged || even < kClearly * byTokens.spreadRank) {
      const spec::Partition partition = best->choice.partition;
      for (const int waves : kAutoWaves)
        tryOut({spec::Partition::Union, 0, waves});
      if (partition == spec::Partition::Greedy || partition == spec::Partition::NodeChunk)
        for (const int waves : kAutoWaves)
          tryOut({partition, 0, waves});
    }
  }
  if (wasMoved)
    view_.leaves = leaves_; // nothing else of the view is needed from here on
  unionRows_ = best->unionRows;
  areRowsClear_ = best->areRowsClear;
  return best->choice;
}

/// The widest tiles read least. But if they are so few that most blocks would be idle, try narrower ones.
Result<void> Planner::narrowWhereIdle(const Choice &choice, const tree::KvTree &tree,
                                      const VariantFacts &facts, const config::Config &config, int blocks,
                                      Plan &plan) {
  if (choice.chunkTokens > 0 || choice.waves > 0 || plan.items.empty() ||
      2 * std::ssize(plan.items) * facts.kvHeads > blocks)
    return {};
  setModel(facts, config, blocks);
  const double widestUs = model_.estimate(plan).microseconds;
  double leastUs = std::numeric_limits<double>::infinity(); // of the narrower ones
  const int widest = unionRows_;
  int best = widest;
  std::swap(tiles_, narrowTiles_); // the widest ones are cut again
  for (const int rows : {64, 16}) {
    if (rows >= widest || rows < facts.ratio)
      continue;
    unionRows_ = rows;
    if (auto prepared = prepareTiles(choice, facts, config, blocks); !prepared)
      return prepared;
    bounds_.set(tiles_, view_, model_);
    // Make no plan of tiles that certainly need a merge or cost more than the widest ones.
    const int chunk = limitItems(choice, facts, config, blocks);
    const LowerBound possible = bounds_.least(chunk);
    if (possible.isMerged)
      continue;
    if (possible.us > widestUs) {
      leastUs = std::min(leastUs, possible.us);
      continue;
    }
    if (auto cut = cutTiles(choice, chunk, tree, facts, config, spare_); !cut)
      return cut;
    if (const double us = model_.estimate(spare_).microseconds; spare_.partialSlots == 0 && us < leastUs) {
      leastUs = us;
      if (us < kClearly * widestUs) {
        best = rows;
        keepSpare(plan);
      }
    }
  }
  std::swap(tiles_, narrowTiles_);
  areRowsClear_ = best != widest || leastUs > widestUs;
  unionRows_ = best;
  return {};
}

} // namespace deft::plan
