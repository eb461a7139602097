#pragma once

#include "runtime/jit/TreeImpl.h"
#include "runtime/plan/Planner.h"

#include <deft/plan.hpp>

namespace deft {

struct Plan::Impl {
  plan::VariantFacts facts;
  config::Config config;
  int workers = 1;
  plan::Planner planner;
  plan::Plan plan;

  std::shared_ptr<TreeStamp> stamp; ///< of the tree; null: the plan fits none
  std::uint64_t generation = 0;     ///< that the stamp had
  int tableTokens = 0;              ///< past the last location that a run names

  bool isCurrent() const { return stamp && stamp->generation() == generation; }

  /// Makes the plan of this tree, anew.
  Result<void> make(const Tree &tree);
  void noteTree(const Tree &tree);
};

} // namespace deft
