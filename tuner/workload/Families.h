#pragma once

#include "runtime/tree/KvTree.h"
#include "tuner/workload/Workload.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Kinds of trees to tune for: workloads of similar shape, at several sizes and steps.
namespace deft::workload {

struct WorkloadFamily {
  std::string name; ///< "few_shot"
  std::string line; ///< a description in one line
};
std::vector<WorkloadFamily> families();

/// One tree of a family.
struct FamilyTree {
  std::string name; ///< in the syntax of make(): "few_shot:prompt=4000,step=120"
  std::uint64_t seed = 0;
  bool isHeldOut = false; ///< for judging, not for tuning
  tree::KvTree tree;
};

/// Makes all trees of a family; an error if no family has this name. Held-out trees come from other
/// parameters, seeds and steps.
support::Result<std::vector<FamilyTree>> familyTrees(std::string_view family);

/// Trees of one workload over time: at steps spread over the whole run, with held-out ones in between.
support::Result<std::vector<FamilyTree>> workloadTrees(const std::string &name, std::uint64_t seed,
                                                       const std::string &recordsFolder = "");

} // namespace deft::workload
