#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/tree/CachePlacement.h"
#include "runtime/tree/KvTree.h"

#include <cstdint>
#include <string>
#include <vector>

namespace deft::measure {

/// Trees of one class, which share one cache while they are measured.
struct ClassTrees {
  std::string name;                ///< the class
  std::vector<tree::KvTree> trees; ///< at least one
};

/// All that the child processes need to know of a session; it is there before they are.
struct Work {
  spec::Variant variant;
  std::vector<exec::ParamValue> params;
  std::vector<ClassTrees> classes;
  tree::PlacementOrder pages = tree::PlacementOrder::Scattered;
  std::uint64_t seed = 1;
  int threads = 1; ///< of the host
};

/// The cache of a class: one that holds the largest of its trees, each of which lies in it from its
/// beginning.
struct ClassInputs {
  std::vector<tree::KvTree> trees; ///< placed
  exec::Inputs inputs;             ///< with queries for the tree that has most
};
support::Result<ClassInputs> makeInputs(const Work &work, const ClassTrees &trees);

} // namespace deft::measure
