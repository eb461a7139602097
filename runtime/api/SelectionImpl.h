#pragma once

#include "runtime/api/TreeImpl.h"
#include "runtime/exec/Selection.h"
#include "runtime/plan/Paths.h"

#include <deft/selection.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace deft {

struct Selection::Impl {
  int budget = 0;
  int lists = 0;
  exec::Selection chosen;
  plan::Paths paths; ///< of the plan that selected

  std::shared_ptr<TreeStamp> stamp; ///< of the tree that the lists are of; null: there are none
  std::uint64_t generation = 0;     ///< that the stamp had
  std::shared_ptr<const std::atomic<bool>> isRedrafted; ///< of the plan that selected, beside the stamp
};

} // namespace deft
