#include "runtime/plan/Planner.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/kernels/Legality.h"
#include "runtime/plan/AgainPrice.h"
#include "runtime/plan/Coverage.h"
#include "runtime/plan/RoundedChunk.h"
#include "runtime/plan/Slope.h"
#include "runtime/plan/WindowStarts.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

namespace deft::plan {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error tooManyRuns(const std::string &needed) {
  return Error{ErrorCode::Diagnostics,
               "the plan needs " + needed + " runs, at most " + std::to_string(TileList::kMostRuns) +
                   " can be planned",
               "plan fewer queries at a time; deep chains of short nodes are better one node each"};
}

} // namespace

Result<void> Planner::check(const tree::KvTree &tree, const VariantFacts &facts,
                            const config::Config &config) const {
  if (const int rows = config::mostRows(config); rows < facts.ratio)
    return Error{ErrorCode::Usage,
                 "the largest tile_q is " + std::to_string(rows) + " rows, one query has " +
                     std::to_string(facts.ratio),
                 ""};
  if (config.chunkTokens < 0)
    return Error{ErrorCode::Usage,
                 "chunk is " + std::to_string(config.chunkTokens) + " tokens, must be positive",
                 "0 lets the planner fill the machine"};
  if (tree.tokens() > tree::KvTree::kMaxTokens)
    return Error{ErrorCode::Diagnostics,
                 "the tree has " + std::to_string(tree.tokens()) + " tokens, at most " +
                     std::to_string(tree::KvTree::kMaxTokens) + " can be planned",
                 ""};
  if (!options_.isInvariant)
    return {};
  if (config.partition != spec::Partition::Node)
    return Error{ErrorCode::Usage,
                 "an invariant plan needs partition `node`, not `" + config::partitionName(config.partition) +
                     "`",
                 ""};
  if (config.phases.size() != 1)
    return Error{ErrorCode::Usage,
                 "an invariant plan needs one phase, not " + std::to_string(config.phases.size()), ""};
  if (auto invariant = kernels::checkInvariant(facts.tensors, config.phases[0], options_.families);
      !invariant)
    return invariant;
  if (config.chunkTokens == 0)
    return Error{ErrorCode::Usage, "an invariant plan needs a chunk that does not depend on the tree",
                 "set the chunk, to 256 for example"};
  return {};
}

Result<void> Planner::make(const tree::KvTree &tree, const VariantFacts &facts, const config::Config &config,
                           int blocks, Plan &plan) {
  read(tree, facts);
  return makeOfRead(tree, facts, config, blocks, plan);
}

const TreeView &Planner::read(const tree::KvTree &tree, const VariantFacts &facts,
                              std::span<const std::uint8_t> standIns) {
  visible_.setStandIns(standIns);
  // Tiles of an invariant plan must not depend on what other queries see, so they leave out hidden tokens
  // themselves.
  visible_.read(tree, options_.isInvariant ? facts.reach.withoutMask() : facts.reach, facts.reach,
                facts.trimStep, view_, !facts.readsKvPos);
  return view_;
}

Result<void> Planner::makeOfRead(const tree::KvTree &tree, const VariantFacts &facts,
                                 const config::Config &config, int blocks, Plan &plan) {
  if (auto checked = check(tree, facts, config); !checked)
    return checked;
  const int queriesPerTile = std::max(config::mostRows(config) / facts.ratio, 1);
  // A run has tokens of one node for queries of one tile, so this is a lower bound of the number of runs.
  if (std::int64_t{view_.placeCount()} * view_.queryCount() / queriesPerTile >
      static_cast<std::int64_t>(TileList::kMostRuns))
    if (const std::int64_t runs = countsOf(view_, queriesPerTile).pathNodes / queriesPerTile;
        runs > static_cast<std::int64_t>(TileList::kMostRuns))
      return tooManyRuns("at least " + std::to_string(runs));
  lastChoice_ = {config.partition, config.chunkTokens};
  hasModel_ = hasOrder_ = false;
  const bool isAuto = config.partition == spec::Partition::Auto;
  if (auto made = isAuto ? makeAuto(tree, facts, config, blocks, plan)
                         : makeAs(lastChoice_, tree, facts, config, blocks, plan);
      !made)
    return made;
  plan.leaves.swap(view_.leaves);
  if (!options_.isInvariant)
    spreadItems(facts, config, blocks, plan);
  if (!options_.isInvariant) // an item's neighbours depend on other queries, and its turns on its own
    order_.apply(config, facts, plan, options_.families);
  // The view of an invariant plan also contains tokens that a mask hides.
  assert((options_.isInvariant || coversAll(plan, view_)) && "a plan leaves out a token of a query");
  if (view_.hasHidden)
    for (std::size_t i = 0; i < plan.queryPos.size(); ++i)
      plan.queryPos[i] = tree.pathTokens(tree.queries()[plan.callerIndex[i]]) - 1;
  plan.reach = facts.reach;
  plan.trimStep = facts.trimStep;
  findWindowStarts(kMostGrowth, plan);
  advanceScratch_.makeRoomFor(plan);
  return {};
}

Result<void> Planner::makeAs(const Choice &choice, const tree::KvTree &tree, const VariantFacts &facts,
                             const config::Config &config, int blocks, Plan &plan) {
  unionRows_ = config::mostRows(config);
  areRowsClear_ = false;
  if (auto made = makeOnce(choice, tree, facts, config, blocks, plan);
      !made || choice.partition != spec::Partition::Union)
    return made;
  return narrowWhereIdle(choice, tree, facts, config, blocks, plan);
}

Result<void> Planner::makeOnce(const Choice &choice, const tree::KvTree &tree, const VariantFacts &facts,
                               const config::Config &config, int blocks, Plan &plan) {
  if (auto prepared = prepareTiles(choice, facts, config, blocks); !prepared)
    return prepared;
  return cutTiles(choice, limitItems(choice, facts, config, blocks), tree, facts, config, plan);
}

Result<void> Planner::prepareTiles(const Choice &choice, const VariantFacts &facts,
                                   const config::Config &config, int blocks) {
  tiles_.clear();
  if (auto made = makeTiles(choice, facts, config, blocks); !made)
    return made;
  if (tiles_.isFull())
    return tooManyRuns("more");
  return {};
}

/// The most tokens of an item of the current tiles, which get limits of their own if they are cut by price.
int Planner::limitItems(const Choice &choice, const VariantFacts &facts, const config::Config &config,
                        int blocks) {
  if (choice.waves > 0) {
    setModel(facts, config, blocks);
    return priceCut_.set(model_, std::max(choice.waves * blocks / facts.kvHeads, 1), tiles_);
  }
  const int chunk = roundedChunk(choice.chunkTokens);
  return chunk > 0 ? chunk : chooseChunkTokens(tiles_.tiles, facts, config.cost, blocks);
}

Result<void> Planner::cutTiles(const Choice &choice, int chunkTokens, const tree::KvTree &tree,
                               const VariantFacts &facts, const config::Config &config, Plan &plan) {
  plan.generation = tree.generation();
  plan.structureGeneration = tree.structureGeneration();
  plan.callerIndex = view_.callerIndex;
  plan.queryPos = view_.queryPos;
  plan.readTokens = view_.readTokens;
  plan.grownTokens = 0;
  plan.mostRuns = 0;
  plan.strictChunk = options_.isInvariant ? roundedChunk(choice.chunkTokens) : 0;
  plan.partition = choice.partition;
  plan.chunkTokens = chunkTokens;
  auto cut = cutter_.cut(view_, tiles_, plan.chunkTokens, !options_.isInvariant, plan);
  if (choice.waves > 0)
    PriceCut::clear(tiles_); // which other choices may cut as well
  if (!cut)
    return cut;
  sorter_.sort(config, facts.ratio, cutter_.longest(), plan);
  return {};
}

Result<void> Planner::makeTiles(const Choice &choice, const VariantFacts &facts, const config::Config &config,
                                int blocks) {
  const int queriesPerTile = config::mostRows(config) / facts.ratio;
  const int chunk = roundedChunk(choice.chunkTokens);
  switch (choice.partition) {
  case spec::Partition::Query:
    makeQueryTiles(view_, scratch_, tiles_);
    return {};
  case spec::Partition::Node: {
    if (options_.isInvariant) {
      makeInvariantTiles(view_, facts.reach, queriesPerTile, chunk, scratch_, tiles_);
      return {};
    }
    Tile like;
    like.chunkTokens = chunk > 0 ? chunk : tree::KvTree::kMaxTokens;
    like.isEven = false;
    makeNodeTiles(view_, queriesPerTile, like, scratch_, tiles_);
    return {};
  }
  case spec::Partition::NodeChunk:
    makeNodeTiles(view_, queriesPerTile, {}, scratch_, tiles_);
    return {};
  case spec::Partition::Flatten:
    makeFlattenTiles(view_, queriesPerTile, chunk > 0 ? chunk : flattenChunk(view_, facts.kvHeads, blocks),
                     scratch_, tiles_);
    return {};
  case spec::Partition::Cascade:
    makeCascadeTiles(view_, queriesPerTile, chunk, facts, config.cost, blocks, scratch_, tiles_);
    return {};
  case spec::Partition::Union:
    makeUnion(facts, config, blocks);
    return {};
  case spec::Partition::Greedy:
    setModel(facts, config, blocks);
    greedy_.assign(view_, model_, chunk);
    greedy_.makeTiles(view_, queriesPerTile, scratch_, tiles_);
    return {};
  case spec::Partition::Auto:
    break;
  }
  return Error{ErrorCode::Internal, "unknown partition", ""};
}

/// Sets the prices for this tree, once.
void Planner::setModel(const VariantFacts &facts, const config::Config &config, int blocks) {
  if (!std::exchange(hasModel_, true))
    model_.set(facts, config, ofTree(config.cost, view_, facts, config, options_.families), blocks,
               options_.families);
}

/// Replaces the best plan so far. Memory that was lent for its runs stays.
void Planner::keepSpare(Plan &plan) {
  std::swap(plan, spare_);
  plan.runs.swapLoan(spare_.runs);
}

/// For orders that do not count items.
void Planner::spreadItems(const VariantFacts &facts, const config::Config &config, int blocks, Plan &plan) {
  if (config.order != config::Order::FromRoot || !hasLastingBlocks(config, options_.families) ||
      std::ssize(plan.items) * facts.kvHeads <= blocks)
    return;
  setModel(facts, config, blocks);
  const int widest = model_.queriesPerTile();
  double tokens = 0;
  for (const abi::Item &item : plan.items)
    tokens += item.tokens;
  if (tokens / model_.tokenStep(widest) * model_.stepUs(widest) < ItemSpread::kLeastUs)
    return;
  if (!hasOrder_)
    spread_.find(model_, facts.kvHeads, blocks, plan);
  spread_.apply(plan);
}

/// Collects sizes of union tiles: those of the phases and, since a kernel may have a cheaper mode for fewer
/// rows, some round numbers. Drops sizes that are no cheaper than the next larger one.
void Planner::makeUnion(const VariantFacts &facts, const config::Config &config, int blocks) {
  setModel(facts, config, blocks);
  prices_.clear();
  const auto add = [&](int rows) {
    if (const int queries = rows / facts.ratio; queries > 0 && rows <= unionRows_)
      prices_.push_back({queries, model_.stepUs(queries) / model_.tokenStep(queries) + model_.againUs()});
  };
  for (const int rows : {16, 32, 64, 128})
    add(rows);
  for (const config::PhaseConfig &phase : config.phases)
    add(std::min(phase.tileQ, unionRows_));
  std::sort(prices_.begin(), prices_.end(),
            [](const TilePrice &a, const TilePrice &b) { return a.queries > b.queries; });
  std::size_t kept = 0;
  for (const TilePrice &price : prices_)
    if (kept == 0 || price.tokenUs < 0.99 * prices_[kept - 1].tokenUs)
      prices_[kept++] = price;
  prices_.resize(kept);
  std::reverse(prices_.begin(), prices_.end());
  // The last step of a tile is half empty on average.
  const double tileUs = model_.itemUs() + model_.stepUs(1) / 2;
  makeUnionTiles(view_, prices_, tileUs, scratch_, tiles_);
}

Result<Plan> makePlan(const tree::KvTree &tree, const VariantFacts &facts, const config::Config &config,
                      int blocks) {
  Planner planner;
  Plan plan;
  if (auto made = planner.make(tree, facts, config, blocks, plan); !made)
    return made.error();
  return plan;
}

PlanSummary summarize(const Plan &plan, const VariantFacts &facts) {
  PlanSummary summary;
  summary.items = static_cast<int>(plan.items.size());
  summary.partialSlots = plan.partialSlots;
  summary.mergedQueries = static_cast<int>(plan.mergeQuery.size());
  for (const abi::Item &item : plan.items) {
    summary.directItems += item.partialBegin < 0;
    summary.dealtItems += item.dealtTiles > 0;
    summary.itemTokens += item.tokens;
  }
  for (const abi::Run &run : plan.runs)
    summary.rowTokens += pairsOf(run) * facts.ratio;
  return summary;
}

} // namespace deft::plan
