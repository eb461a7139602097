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
#include "runtime/plan/TileBounds.h"
#include "runtime/plan/VariantFacts.h"
#include "runtime/plan/VisibleTree.h"
#include "runtime/tree/KvTree.h"

namespace deft::plan {

struct PlanOptions {
  /// A query's result does not change by a bit when other requests join or leave (a split of one of its nodes
  /// counts as a change). Needs partition `node`, a chunk, and one phase, all chosen without the tree. Every
  /// output then goes through the merge.
  bool isInvariant = false;
  kernels::Families families = kernels::families();
};

enum class Advance {
  Done,         ///< the plan is the tree's
  NeedsNewPlan, ///< the plan is as it was
};

/// What advance() works with, kept between its calls for the memory.
struct AdvanceScratch {
  UnfilledVector<int> gained; ///< by each of the plan's leaves, in the step under way
  UnfilledVector<int> held;   ///< of that, what lies on this rank
  UnfilledVector<int> moved;  ///< by each of its window starts

  void makeRoomFor(const Plan &plan) {
    gained.resize(plan.leaves.size());
    held.resize(plan.leaves.size());
    moved.resize(plan.windowStarts.size());
  }
};

/// Brings a plan to a tree whose leaves have grown since, by any number of tokens, in time for leaves and
/// runs. Partials and the merge map stay as they are; items may outgrow the chunk by what their leaves grew.
Advance advance(const tree::KvTree &tree, Plan &plan, AdvanceScratch &scratch);

/// advance() for those who do it once.
inline Advance advance(const tree::KvTree &tree, Plan &plan) {
  AdvanceScratch scratch;
  return advance(tree, plan, scratch);
}

/// Makes plans: a pure function of its arguments, the same ones give the same plan. Holds the memory that
/// planning needs, so that from the second plan of a size on nothing is allocated. For one thread at a time.
///
/// Under `auto` the first tree of a class (classOf) is planned in every way there is, and the cheapest by the
/// cost model is kept for all trees of the class, with the rows of its tiles unless these were a near thing:
/// with `auto`, what a planner has planned before is one of its arguments.
class Planner {
public:
  /// A leaf may gain so many tokens before it is time for a new plan: chunks are then still about even.
  static constexpr int kMostGrowth = 64;

  explicit Planner(const PlanOptions &options = {}) : options_(options) {}

  /// Replaces `plan`, whose memory is kept. `blocks` is how many blocks (CPU: threads) the machine runs at a
  /// time; it matters where the config leaves the chunk size open. After an error the plan is not to be used.
  support::Result<void> make(const tree::KvTree &tree, const VariantFacts &facts,
                             const config::Config &config, int blocks, Plan &plan);

  /// make() in two steps, for those who choose the config by what the tree is like: what read() gives stays
  /// until makeOfRead() has made the plan of it.
  const TreeView &read(const tree::KvTree &tree, const VariantFacts &facts);
  support::Result<void> makeOfRead(const tree::KvTree &tree, const VariantFacts &facts,
                                   const config::Config &config, int blocks, Plan &plan);

  /// plan::advance() of a plan that was made here, with memory that is here.
  Advance advance(const tree::KvTree &tree, Plan &plan) { return plan::advance(tree, plan, advanceScratch_); }

  /// How the last plan was cut: what `auto` chose, or what the config said.
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
  /// What the plan at hand was made of.
  struct Made {
    Choice choice;
    int unionRows = 0;
    bool areRowsClear = false;
    bool isThere = false; ///< `plan` is of this choice
  };
  support::Result<Made> chooseAuto(const tree::KvTree &tree, const VariantFacts &facts,
                                   const config::Config &config, int blocks, Plan &plan);
  support::Result<void> prepareTiles(const Choice &choice, const VariantFacts &facts,
                                     const config::Config &config, int blocks);
  support::Result<void> cutTiles(const Choice &choice, const tree::KvTree &tree, const VariantFacts &facts,
                                 const config::Config &config, int blocks, Plan &plan);
  int chunkOf(const Choice &choice, const VariantFacts &facts, int blocks) const;
  support::Result<void> makeTiles(const Choice &choice, const VariantFacts &facts,
                                  const config::Config &config, int blocks);
  int flattenChunk(int kvHeads, int blocks) const;
  void makeUnion(const VariantFacts &facts, const config::Config &config, int blocks);

  PlanOptions options_;
  VisibleTree visible_;
  TreeView view_;
  TileList tiles_;
  PartitionScratch scratch_;
  ItemCutter cutter_;
  PhaseSorter sorter_;
  RunOrder order_;
  TileBounds bounds_;
  UnfilledVector<Plan::Leaf> leaves_; ///< of the first plan that `auto` makes
  std::vector<TilePrice> prices_;
  int unionRows_ = 0;         ///< most of a union tile
  int tiledRows_ = 0;         ///< the same of the union tiles made last
  bool areRowsClear_ = false; ///< those of the last plan: not by little, nor by chance
  CostModel model_;
  GreedyPartition greedy_;
  AutoMemory auto_;
  Choice lastChoice_;
  AdvanceScratch advanceScratch_;
};

/// For those who plan once.
support::Result<Plan> makePlan(const tree::KvTree &tree, const VariantFacts &facts,
                               const config::Config &config, int blocks);

/// What a plan costs, for people and for tests.
struct PlanSummary {
  int items = 0;
  int directItems = 0; ///< write the output, no partial
  int dealtItems = 0;  ///< some of their tokens are dealt to warps (abi::Item)
  long long itemTokens =
      0; ///< tokens read by all items, for each KV head: shared ones as often as they are read
  long long rowTokens = 0; ///< (row, token) pairs that a query sees, for each KV head
  int partialSlots = 0;
  int mergedQueries = 0;
};
PlanSummary summarize(const Plan &plan, const VariantFacts &facts);

} // namespace deft::plan
