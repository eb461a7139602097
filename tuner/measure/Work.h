#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/ParamRanges.h"
#include "runtime/plan/VariantFacts.h"
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
  /// One cache for all classes but the largest: on a GPU, making and copying it takes longer than a class's
  /// measurements.
  bool sharesCache = false;
};

/// What plans of the work need to know.
inline plan::VariantFacts factsOf(const Work &work, config::DeviceKind device) {
  return plan::VariantFacts::of(work.variant, device, exec::reachOf(work.variant, work.params));
}

/// A cache with values, in which trees lie from its beginning.
struct ClassInputs {
  std::vector<tree::KvTree> trees; ///< placed
  exec::Inputs inputs;             ///< with queries for the tree that has most
  int begin = 0;                   ///< where the first token of the trees lies
};

/// Room for at least so much, whatever the trees need.
struct CacheSize {
  int tokens = 0, queries = 0;

  static CacheSize of(const std::vector<tree::KvTree> &trees);
  CacheSize orMore(const CacheSize &other) const;
};

support::Result<ClassInputs> makeInputs(const Work &work, const ClassTrees &trees,
                                        const CacheSize &least = {});

/// The inputs of one class after the other. `work` must be there for its life.
class InputPool {
public:
  explicit InputPool(const Work &work);

  /// Goes to a class. True: the inputs are others than before.
  support::Result<bool> open(const ClassTrees &trees);

  const std::vector<tree::KvTree> &trees() const { return made_.trees; }
  exec::Inputs &inputs() { return made_.inputs; }
  const exec::Inputs &inputs() const { return made_.inputs; }

private:
  const Work &work_;
  CacheSize shared_; ///< of all classes that share one; no tokens: none does
  ClassInputs made_;
  bool isShared_ = false; ///< what was made
};

} // namespace deft::measure
