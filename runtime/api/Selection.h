#pragma once

#include "runtime/api/Tree.h"
#include "runtime/exec/Selection.h"
#include "runtime/plan/Paths.h"

#include <deft/c/selection.h>

#include <atomic>
#include <cstdint>
#include <memory>

struct deft_selection {
  int budget = 0;
  int lists = 0;
  deft::exec::Selection chosen;
  deft::plan::Paths paths; ///< of the plan that selected

  std::shared_ptr<deft::api::TreeStamp> stamp;          ///< of the lists' tree; null: there are no lists
  std::uint64_t generation = 0;                         ///< of the stamp
  std::shared_ptr<const std::atomic<bool>> isRedrafted; ///< of the plan that selected, besides the stamp
};
