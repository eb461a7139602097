#pragma once

#include "runtime/api/TreeImpl.h"
#include "runtime/config_cache/ConfigChooser.h"
#include "runtime/plan/Drafts.h"
#include "runtime/plan/Planner.h"

#include <deft/plan.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

namespace deft {

struct Plan::Impl {
  std::string attention; ///< that it was made for
  plan::VariantFacts facts;
  config::Config config;
  PlanOptions options;
  /// Chooses the config for a tree; none: it is the same for all trees.
  std::optional<config_cache::ConfigChooser> chooser;
  int changesSeen = 0;        ///< of the chooser
  bool isCaptured = false;    ///< a graph has the plan's room: the config stays
  bool isRefitted = false;    ///< by makeAs()
  bool growsOnDevice = false; ///< leaves are to grow without the host
  int workers = 1;
  plan::Planner planner;
  plan::Plan plan;
  plan::DraftTables drafts; ///< of the plan
  bool needsMask = false;   ///< nobody has said yet which drafts see which
  /// Of the mask of drafts that the plan has, for who keeps what was computed by it: another one has come.
  std::shared_ptr<std::atomic<bool>> isRedrafted = std::make_shared<std::atomic<bool>>(false);

  std::shared_ptr<TreeStamp> stamp; ///< of the tree; null: the plan fits none
  std::uint64_t generation = 0;     ///< that the stamp had

  /// Entries that a page table needs for the plan.
  int tablePages(int pageSize) const {
    return pageSize > 0 && plan.tableTokens > 0 ? (plan.tableTokens - 1) / pageSize + 1 : 0;
  }
  /// An error where a mask shows what the plan leaves out.
  Result<void> checkReach(const plan::Reach &reach, const std::string &attention) const;
  bool isCurrent() const { return stamp && stamp->generation() == generation; }
  bool isCurrentFor(const Tree &tree) const { return stamp == tree.impl().stamp && isCurrent(); }

  /// Makes the plan of this tree, anew.
  Result<void> make(const Tree &tree);
  Result<Advanced> advance(const Tree &tree);
  /// As make(), of `auto` with this choice, and with no more runs than that needs.
  Result<void> makeAs(const plan::Choice &choice, const Tree &tree);
  /// What is wrong with the numbers of a mask.
  Result<void> checkMask(const DraftMask &mask) const;
  PlanSummary summary() const;
  /// The plan in a line of the log.
  std::string sentence() const;
  void noteTree(const Tree &tree);

  ConfigChoice choice() const;

  /// Of a GPU: by which its kernels are compared.
  const config::CostCoefficients &kernelPrices() const;
  /// Of the tree that the plan is current for; its time is told by `prices`.
  Result<std::string> picture(const Tree &tree, const config::CostCoefficients &prices) const;

private:
  /// Where the options ask for it. After an error the plan fits no tree.
  Result<void> checkPlaces(const Tree &tree);
  void chooseConfig(const Tree &tree, const plan::TreeView &view);
  /// The plan of a tree that may have stand-ins for drafts; with `fixed`, else with the chosen config.
  Result<void> makePlan(const Tree &tree, const plan::VariantFacts &known, const config::Config *fixed);
  Result<void> checkChunk(const Tree &tree) const;
  Result<void> makeDrafted(const Tree &tree, const plan::VariantFacts &known, const config::Config *fixed);
  /// Leaves do not grow in items whose tokens stand in turn and are not dealt: such plans are made from the
  /// root.
  Result<void> letLeavesGrow(const Tree &tree);
};

/// The config that the options make of one, for the partition, the chunk and, where the plan is to be
/// invariant, the phases.
config::Config withOptions(config::Config config, const PlanOptions &options);

} // namespace deft
