#pragma once

#include "runtime/tree/KvTree.h"
#include "tuner/workload/Workload.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Kinds of trees to tune for: workloads of like shape, at several sizes and steps.
namespace deft::workload {

struct WorkloadFamily {
  std::string name; ///< "few_shot"
  std::string line; ///< what it is, in one line
};
std::vector<WorkloadFamily> families();

/// One tree of a family.
struct FamilyTree {
  std::string name; ///< as make() takes it: "few_shot:prompt=4000,step=120"
  std::uint64_t seed = 0;
  bool isHeldOut = false; ///< to judge by, not to tune on
  tree::KvTree tree;
};

/// All trees of a family, made; an error where there is none of the name. Trees that are held out come from
/// other parameters, seeds and steps.
support::Result<std::vector<FamilyTree>> familyTrees(std::string_view family);

/// Trees of one workload as it goes on: at steps spread over all of them, and held-out ones between.
support::Result<std::vector<FamilyTree>> workloadTrees(const std::string &name, std::uint64_t seed,
                                                       const std::string &recordsFolder = "");

} // namespace deft::workload
