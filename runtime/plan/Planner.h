#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"
#include "runtime/plan/Auto.h"
#include "runtime/plan/CostModel.h"
#include "runtime/plan/Greedy.h"
#include "runtime/plan/Items.h"
#include "runtime/plan/Order.h"
#include "runtime/plan/Partitions.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/PriceCut.h"
#include "runtime/plan/Spread.h"
#include "runtime/plan/TileBounds.h"
#include "runtime/plan/VariantFacts.h"
#include "runtime/plan/VisibleTree.h"
#include "runtime/tree/KvTree.h"

namespace deft::plan {

struct PlanOptions {
  /// The bits of a query's result do not change when other requests join or leave (splitting one of its nodes
  /// counts as a change). Requires partition `node`, a chunk and one phase, all chosen without looking at the
  /// tree. Every output then goes through the merge.
  bool isInvariant = false;
  kernels::Families families = kernels::families();
};

enum class Advance {
  Done,         ///< the plan now fits the tree
  NeedsNewPlan, ///< the plan is unchanged
};

/// The memory of advance(), kept between its calls.
struct AdvanceScratch {
  UnfilledVector<int> gained; ///< in this step, for each leaf of the plan
  UnfilledVector<int> held;   ///< the part of it that lies on this rank
  UnfilledVector<int> moved;  ///< for each window start of the plan

  void makeRoomFor(const Plan &plan) {
    gained.resize(plan.leaves.size());
    held.resize(plan.leaves.size());
    moved.resize(plan.windowStarts.size());
  }
};

/// Updates a plan after leaves of its tree have grown, by any number of tokens, in time linear in leaves and
/// runs. Partials and the merge map do not change; items may exceed the chunk by the growth of their leaves.
Advance advance(const tree::KvTree &tree, Plan &plan, AdvanceScratch &scratch);

/// The same for callers that advance only once.
inline Advance advance(const tree::KvTree &tree, Plan &plan) {
  AdvanceScratch scratch;
  return advance(tree, plan, scratch);
}

/// Makes plans: a pure function of its arguments, so equal arguments give equal plans. It keeps its memory:
/// after one plan of a size it allocates nothing. For one thread at a time.
///
/// Under `auto` it plans the first tree of a class (classOf) in every promising way and keeps the choice that
/// the cost model finds cheapest for all trees of the class. It also keeps the rows of the tiles if these won
/// clearly. So with `auto` a plan also depends on earlier trees.
class Planner {
public:
  /// The most tokens that a leaf may gain before a new plan is due: until then chunks stay about even.
  static constexpr int kMostGrowth = 64;

  explicit Planner(const PlanOptions &options = {}) : options_(options) {}

  /// Replaces `plan` and reuses its memory. `blocks` is the number of blocks (CPU: threads) that run at a
  /// time; it matters if the config leaves the chunk open. After an error `plan` is unusable.
  support::Result<void> make(const tree::KvTree &tree, const VariantFacts &facts,
                             const config::Config &config, int blocks, Plan &plan);

  /// make() in two steps, for callers that choose the config from the tree. The view that read() returns is
  /// valid until makeOfRead() has made the plan. `standIns` is for trees with drafts over ranks: see
  /// VisibleTree.
  const TreeView &read(const tree::KvTree &tree, const VariantFacts &facts,
                       std::span<const std::uint8_t> standIns = {});
  support::Result<void> makeOfRead(const tree::KvTree &tree, const VariantFacts &facts,
                                   const config::Config &config, int blocks, Plan &plan);

  /// plan::advance() with the memory of this planner.
  Advance advance(const tree::KvTree &tree, Plan &plan) { return plan::advance(tree, plan, advanceScratch_); }

  /// The partition and chunk of the last plan: the choice of `auto`, or the config's.
  const Choice &lastChoice() const { return lastChoice_; }

private:
  support::Result<void> check(const tree::KvTree &tree, const VariantFacts &facts,
                              const config::Config &config) const;
  support::Result<void> makeAuto(const tree::KvTree &tree, const VariantFacts &facts,
                                 const config::Config &config, int blocks, Plan &plan);
  support::Result<void> makeAs(const Choice &choice, const tree::KvTree &tree, const VariantFacts &facts,
                               const config::Config &config, int blocks, Plan &plan);
  support::Result<void> makeOnce(const Choice &choice, const tree::KvTree &tree, const VariantFacts &facts,
                                 const config::Config &config, int blocks, Plan &plan);
  support::Result<void> narrowWhereIdle(const Choice &choice, const tree::KvTree &tree,
                                        const VariantFacts &facts, const config::Config &config, int blocks,
                                        Plan &plan);
  support::Result<Choice> chooseAuto(const tree::KvTree &tree, const VariantFacts &facts,
                                     const config::Config &config, int blocks, Plan &plan);
  support::Result<void> prepareTiles(const Choice &choice, const VariantFacts &facts,
                                     const config::Config &config, int blocks);
  int limitItems(const Choice &choice, const VariantFacts &facts, const config::Config &config, int blocks);
  support::Result<void> cutTiles(const Choice &choice, int chunkTokens, const tree::KvTree &tree,
                                 const VariantFacts &facts, const config::Config &config, Plan &plan);
  support::Result<void> makeTiles(const Choice &choice, const VariantFacts &facts,
                                  const config::Config &config, int blocks);
  void setModel(const VariantFacts &facts, const config::Config &config, int blocks);
  void keepSpare(Plan &plan);
  void spreadItems(const VariantFacts &facts, const config::Config &config, int blocks, Plan &plan);
  void makeUnion(const VariantFacts &facts, const config::Config &config, int blocks);

  PlanOptions options_;
  VisibleTree visible_;
  TreeView view_;
  TileList tiles_, narrowTiles_;
  Plan spare_; ///< a plan that is compared with the best one, which is in the caller's memory
  PartitionScratch scratch_;
  ItemCutter cutter_;
  PhaseSorter sorter_;
  PriceCut priceCut_;
  ItemSpread spread_, spareSpread_;
  bool hasOrder_ = false; ///< spread_ has found the order of the plan
  RunOrder order_;
  TileBounds bounds_;
  UnfilledVector<Plan::Leaf> leaves_; ///< of the best plan that `auto` has made
  std::vector<TilePrice> prices_;
  int unionRows_ = 0;         ///< most rows of a union tile
  bool areRowsClear_ = false; ///< the choice of the last plan's rows was not within the error of prices
  CostModel model_;
  bool hasModel_ = false; ///< it has the prices of this tree
  GreedyPartition greedy_;
  AutoMemory auto_;
  Choice lastChoice_;
  AdvanceScratch advanceScratch_;
};

/// For callers that plan only once.
support::Result<Plan> makePlan(const tree::KvTree &tree, const VariantFacts &facts,
                               const config::Config &config, int blocks);

/// The cost of a plan in a few numbers, for people and for tests.
struct PlanSummary {
  int items = 0;
  int directItems = 0; ///< items that write the output, not a partial
  int dealtItems = 0;  ///< items with tokens that are dealt to warps (abi::Item)
  long long itemTokens =
      0; ///< tokens read by all items, for each KV head: shared ones as often as they are read
  long long rowTokens = 0; ///< (row, token) pairs that a query sees, for each KV head
  int partialSlots = 0;
  int mergedQueries = 0;
};
PlanSummary summarize(const Plan &plan, const VariantFacts &facts);

} // namespace deft::plan
