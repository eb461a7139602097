#pragma once

#include "templates/deft/abi.h"

#include <cstdint>
#include <vector>

namespace deft::plan {

/// The work list and the merge map of one tree under one config. A plain value: the executors upload
/// or walk it, and every field means what templates/deft/abi.h says.
struct Plan {
  struct Phase { ///< the items of one phase of the config, heaviest first
    int itemBegin = 0;
    int itemCount = 0;
  };

  std::uint64_t generation = 0; ///< of the tree it was made for
  std::vector<abi::Item> items;
  std::vector<abi::Run> runs;
  std::vector<Phase> phases;    ///< one for each phase of the config, possibly empty
  std::vector<int> callerIndex; ///< of each query of the plan's order
  std::vector<int> queryPos;
  std::vector<int> mergeQuery; ///< queries with more or fewer than one partial
  std::vector<int> mergeBegin; ///< CSR: mergeQuery.size() + 1 entries
  std::vector<int> mergeSlot;
  int partialSlots = 0;

  int queryCount() const { return static_cast<int>(callerIndex.size()); }
};

} // namespace deft::plan
