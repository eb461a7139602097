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

/// A mask of drafts, as it is in the memory of who runs the plan.
struct DraftMask {
  const std::uint32_t *bits = nullptr;
  const int *depths = nullptr, *lengths = nullptr; ///< null: not given
  int drafts = 0, requests = 0;
};

/// A plan on the host: of a processor, or that which a GPU gets.
struct Plan {
  std::string attention; ///< that it was made for
  int pageSize = 0;      ///< of its cache; 0: contiguous
  plan::VariantFacts facts;
  std::string whyNotOverRanks; ///< an error where the tree is over ranks; empty: it may be
  config::Config config;
  deft_plan_options options = {}; ///< without params, which are their caller's
  /// Chooses the config for a tree; none: it is the same for all trees.
  std::optional<config_cache::ConfigChooser> chooser;
  int changesSeen = 0;        ///< of the chooser
  bool isCaptured = false;    ///< a graph has the plan's room: the config stays
  bool isRefitted = false;    ///< by makeAs()
  bool growsOnDevice = false; ///< leaves are to grow without the host
  int workers = 1;
  plan::Planner planner;
  std::optional<plan::BeamPlanner> beamPlanner; ///< of steps of beams; none before the first
  bool isOfBeams = false;                       ///< by `beamPlanner`
  plan::Plan plan;
  plan::DraftTables drafts; ///< of the plan
  bool needsMask = false;   ///< nobody has said yet which drafts see which
  /// Of the mask of drafts that the plan has, for who keeps what was computed by it: another one has come.
  std::shared_ptr<std::atomic<bool>> isRedrafted = std::make_shared<std::atomic<bool>>(false);

  std::shared_ptr<PlanCapture> captured; ///< null: no steps are captured (StepCapture.h)

  /// Of a plan that shares its tree with another one, which reads the other nodes; null: it reads all.
  std::shared_ptr<const Division> division;
  bool readsExpanded = false; ///< it is the one that reads the division's nodes

  std::shared_ptr<TreeStamp> stamp; ///< of the tree; null: the plan fits none
  std::uint64_t generation = 0;     ///< that the stamp had

  bool isInvariant() const { return options.is_invariant != 0; }
  /// How the plan was cut.
  const plan::Choice &lastChoice() const {
    return isOfBeams ? beamPlanner->lastChoice() : planner.lastChoice();
  }
  int queryCount() const { return plan.queryCount(); }
  /// Entries that a page table needs for the plan.
  int tablePages(int pageSize) const {
    return pageSize > 0 && plan.tableTokens > 0 ? (plan.tableTokens - 1) / pageSize + 1 : 0;
  }
  /// An error where a mask shows what the plan leaves out.
  Result<void> checkReach(const plan::Reach &reach, const std::string &attention) const;
  bool isCurrent() const { return stamp && stamp->generation() == generation; }
  bool isCurrentFor(const deft_tree &tree) const { return stamp == tree.stamp && isCurrent(); }
  /// An error where the tree has changed; `what` was refused then.
  Result<void> checkCurrent(const std::string &what) const;

  /// Makes the plan of this tree, anew.
  Result<void> make(const deft_tree &tree);
  /// What it had to do: DEFT_ADVANCED_...
  Result<deft_advanced> advance(const deft_tree &tree);
  /// As make(), of `auto` with this choice, and with no more runs than that needs.
  Result<void> makeAs(const plan::Choice &choice, const deft_tree &tree);
  /// What is wrong with the numbers of a mask.
  Result<void> checkMask(const DraftMask &mask) const;
  Result<void> draft(const DraftMask &mask);
  deft_plan_summary summary() const;
  Result<void> giveSummary(deft_plan_summary *to) const;
  /// For the caller, who gives it back.
  Result<void> giveChoice(deft_config_choice **to) const;

  /// For which reason it has its config, in words.
  std::string why() const;

  /// Of a GPU: by which its kernels are compared.
  const config::CostCoefficients &kernelPrices() const;
  /// The plan must be current for the tree. `prices` give its time. `field` names the plan's argument in
  /// errors.
  Result<plan::PlanReport> report(const deft_tree &tree, const config::CostCoefficients &prices,
                                  const char *field = "plan") const;
  Result<std::string> picture(const deft_tree &tree, const config::CostCoefficients &prices) const;

private:
  /// The tree as the plan reads it, where that is only some nodes. Of when the plan was made.
  std::optional<tree::KvTree> formTree;

  std::string rule() const;
  /// The plan in a line of the log.
  std::string sentence() const;
  using Begin = std::optional<std::chrono::steady_clock::time_point>; ///< none: no steps are captured
  static Begin begin();
  /// The plan is of this tree now, for which work began then.
  void noteTree(const deft_tree &tree, Begin begin);
  /// Where the options ask for it. After an error the plan fits no tree.
  Result<void> checkPlaces(const deft_tree &tree);
  Result<void> checkRanks(const deft_tree &tree) const;
  Result<void> checkDivision(const deft_tree &tree) const;
  bool readsSomeNodes() const { return division && (readsExpanded || !division->chosen.empty()); }
  /// The tree with the nodes that the plan reads.
  const tree::KvTree &treeToRead(const deft_tree &tree) const { return formTree ? *formTree : tree.tree(); }
  void chooseConfig(const deft_tree &tree, config_cache::TreeFeatures features);
  /// The plan of a tree that may have stand-ins for drafts; with `fixed`, else with the chosen config.
  Result<void> makePlan(const deft_tree &tree, const plan::VariantFacts &known, const config::Config *fixed);
  Result<void> makeOfBeams(const deft_tree &tree, const plan::VariantFacts &known,
                           const config::Config *fixed);
  Result<void> checkBeams(const tree::BeamTree &beams) const;
  Result<void> checkChunk(const deft_tree &tree) const;
  Result<void> makeDrafted(const deft_tree &tree, const plan::VariantFacts &known,
                           const config::Config *fixed);
  /// Leaves do not grow in items whose tokens stand in turn and are not dealt: such plans are made from the
  /// root.
  Result<void> letLeavesGrow(const deft_tree &tree);
};

/// A plan that a page shows, the tree that it is current for, and the prices that tell its time.
struct ShownPlan {
  const Plan *plan;
  const deft_tree *tree;
  const config::CostCoefficients &prices;
};

/// A page of one plan, or of two: `other` has no plan where the caller gives none.
Result<std::string> pageOf(const ShownPlan &shown, const ShownPlan &other);

/// A caller's options, whose params are theirs: for the call. Null: all default.
Result<deft_plan_options> planOptionsOf(const deft_plan_options *given);

/// The config that the options make of one, for the partition, the chunk and, where the plan is to be
/// invariant, the phases.
config::Config withOptions(config::Config config, const deft_plan_options &options);

/// A plan of the processor.
Result<std::unique_ptr<deft_plan>> makePlan(const deft_attention &attention, const deft_tree &tree,
                                            const deft_plan_options *options);

} // namespace deft::api

struct deft_plan : deft::api::Plan {};
