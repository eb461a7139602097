#pragma once

#include "runtime/api/Call.h"
#include "runtime/api/Expanded.h"
#include "runtime/api/Params.h"
#include "runtime/api/Tree.h"
#include "runtime/config_cache/ConfigChooser.h"
#include "runtime/plan/BeamPlanner.h"
#include "runtime/plan/Drafts.h"
#include "runtime/plan/Planner.h"
#include "runtime/plan/report/PlanReport.h"

#include <deft/c/plan.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace deft::api {

class PlanCapture;

/// A mask of drafts, in the memory of the place that runs the plan.
struct DraftMask {
  const std::uint32_t *bits = nullptr;
  const int *depths = nullptr, *lengths = nullptr; ///< null: not given
  int drafts = 0, requests = 0;
};

/// A plan on the host: of a processor, or for a GPU.
struct Plan {
  std::string attention;   ///< that it was made for, as messages call it
  std::string variantName; ///< its name
  plan::VariantFacts facts;
  std::string whyNotOverRanks; ///< an error if the tree is over ranks; empty: it may be
  config::Config config;
  deft_plan_options options = {}; ///< without params, which belong to their caller
  /// Chooses the config for a tree; none: all trees have the same config.
  std::optional<config_cache::ConfigChooser> chooser;
  plan::Planner planner;
  std::optional<plan::BeamPlanner> beamPlanner; ///< of steps of beams; none before the first
  plan::Plan plan;
  plan::DraftTables drafts; ///< of the plan
  /// Set when another mask of drafts arrives: results computed with the old mask are then outdated.
  std::shared_ptr<std::atomic<bool>> isRedrafted = std::make_shared<std::atomic<bool>>(false);

  std::shared_ptr<PlanCapture> captured; ///< null: no steps are captured (StepCapture.h)

  /// For a plan that shares its tree with another plan for the other nodes; null: it reads all nodes.
  std::shared_ptr<const Division> division;

  std::shared_ptr<TreeStamp> stamp; ///< of the tree; null: the plan fits no tree
  std::uint64_t generation = 0;     ///< of the stamp, when the plan was made

  int pageSize = 0;    ///< of the attention's cache; 0: contiguous
  int changesSeen = 0; ///< of the chooser
  int workers = 1;
  bool givesLse = false;
  bool isCaptured = false;    ///< a graph has captured the plan's room: the config stays
  bool isRefitted = false;    ///< by makeAs()
  bool growsOnDevice = false; ///< leaves grow without the host
  bool isOfBeams = false;     ///< by `beamPlanner`
  bool needsMask = false;     ///< no mask of drafts has been given yet
  bool readsExpanded = false; ///< it reads the division's nodes

  bool isInvariant() const { return options.is_invariant != 0; }
  /// How the plan divides the tree.
  const plan::Choice &lastChoice() const {
    return isOfBeams ? beamPlanner->lastChoice() : planner.lastChoice();
  }
  int queryCount() const { return plan.queryCount(); }
  /// The number of page-table entries that the plan needs.
  int tablePages(int pageSize) const {
    return pageSize > 0 && plan.tableTokens > 0 ? (plan.tableTokens - 1) / pageSize + 1 : 0;
  }
  /// An error if a mask shows tokens that the plan omits.
  Result<void> checkReach(const plan::Reach &reach, const std::string &attention) const;
  bool isCurrent() const { return stamp && stamp->generation() == generation; }
  bool isCurrentFor(const deft_tree &tree) const { return stamp == tree.stamp && isCurrent(); }
  /// An error if the tree has changed; `what` is the refused operation.
  Result<void> checkCurrent(const std::string &what) const;

  /// Makes the plan of this tree from scratch.
  Result<void> make(const deft_tree &tree);
  /// Returns the work that was needed: DEFT_ADVANCED_...
  Result<deft_advanced> advance(const deft_tree &tree);
  /// Like make(), by `auto` with this choice, with the fewest possible runs.
  Result<void> makeAs(const plan::Choice &choice, const deft_tree &tree);
  /// Checks the numbers of a mask.
  Result<void> checkMask(const DraftMask &mask) const;
  Result<void> draft(const DraftMask &mask);
  deft_plan_summary summary() const;
  Result<void> giveSummary(deft_plan_summary *to) const;
  /// For the caller, who must free it.
  Result<void> giveChoice(deft_config_choice **to) const;

  /// The reason for its config, in words.
  std::string why() const;

  /// For a GPU: the prices that compare its kernels.
  config::CostCoefficients kernelPrices() const;
  /// The plan must be current for the tree. The plan's time follows from `prices`. `field` is the name of the
  /// plan's argument in errors.
  Result<plan::PlanReport> report(const deft_tree &tree, const config::CostCoefficients &prices,
                                  const char *field = "plan") const;
  Result<std::string> picture(const deft_tree &tree, const config::CostCoefficients &prices) const;

private:
  /// The tree with only the nodes that the plan reads, if these are not all. From when the plan was made.
  std::optional<tree::KvTree> formTree;

  std::string rule() const;
  /// The plan as a line of the log.
  std::string sentence() const;
  using Begin = std::optional<std::chrono::steady_clock::time_point>; ///< none: no steps are captured
  static Begin begin();
  /// Notes that the plan is now of this tree, and that work on it started at `begin`.
  void noteTree(const deft_tree &tree, Begin begin);
  /// Checks if the options ask for it. After an error the plan fits no tree.
  Result<void> checkPlaces(const deft_tree &tree);
  Result<void> checkRanks(const deft_tree &tree) const;
  Result<void> checkDivision(const deft_tree &tree) const;
  bool readsSomeNodes() const { return division && (readsExpanded || !division->chosen.empty()); }
  /// The tree with the nodes that the plan reads.
  const tree::KvTree &treeToRead(const deft_tree &tree) const { return formTree ? *formTree : tree.tree(); }
  void chooseConfig(const deft_tree &tree, config_cache::TreeFeatures features);
  /// Makes the plan of a tree that may have stand-ins for drafts, with `fixed` or the chosen config.
  Result<void> makePlan(const deft_tree &tree, const plan::VariantFacts &known, const config::Config *fixed);
  Result<void> makeOfBeams(const deft_tree &tree, const plan::VariantFacts &known,
                           const config::Config *fixed);
  Result<void> checkBeams(const tree::BeamTree &beams) const;
  Result<void> checkChunk(const deft_tree &tree) const;
  Result<void> makeDrafted(const deft_tree &tree, const plan::VariantFacts &known,
                           const config::Config *fixed);
  /// Leaves cannot grow in items with alternating tokens that are not dealt: such plans are made from the
  /// root.
  Result<void> letLeavesGrow(const deft_tree &tree);
};

/// A plan on a page, the tree for which it is current, and the prices for its time.
struct ShownPlan {
  const Plan *plan;
  const deft_tree *tree;
  config::CostCoefficients prices;
};

/// A page of one or two plans: `other` has no plan if the caller gives none.
Result<std::string> pageOf(const ShownPlan &shown, const ShownPlan &other);

/// A caller's options for the call; their params stay the caller's. Null: all defaults.
Result<deft_plan_options> planOptionsOf(const deft_plan_options *given);

/// Applies the options to a config: the partition, the chunk and, for an invariant plan, the
/// phases.
config::Config withOptions(config::Config config, const deft_plan_options &options);

/// A plan of the processor.
Result<std::unique_ptr<deft_plan>> makePlan(const deft_attention &attention, const deft_tree &tree,
                                            const deft_plan_options *options);

} // namespace deft::api

struct deft_plan : deft::api::Plan {};
