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

/// Trees of one class, which share a cache while they are measured.
struct ClassTrees {
  std::string name;                ///< the class
  std::vector<tree::KvTree> trees; ///< at least one
};

/// A session's data for the child processes; complete before they start.
struct Work {
  spec::Variant variant;
  std::vector<exec::ParamValue> params;
  std::vector<ClassTrees> classes;
  tree::PlacementOrder pages = tree::PlacementOrder::Scattered;
  std::uint64_t seed = 1;
  int threads = 1; ///< of the host
  /// One cache for all classes except the largest: on a GPU, making and copying a cache takes longer than the
  /// measurements of a class.
  bool sharesCache = false;
};

/// The facts that plans of the work need.
inline plan::VariantFacts factsOf(const Work &work, config::DeviceKind device) {
  return plan::VariantFacts::of(work.variant, device, exec::reachOf(work.variant, work.params));
}

/// A cache with values that holds the trees from its beginning on.
struct ClassInputs {
  std::vector<tree::KvTree> trees; ///< placed
  exec::Inputs inputs;             ///< with queries for the tree with the most
  int begin = 0;                   ///< the place of the trees' first token
};

/// A minimum size, independent of the trees' needs.
struct CacheSize {
  int tokens = 0, queries = 0;

  static CacheSize of(const std::vector<tree::KvTree> &trees);
  CacheSize orMore(const CacheSize &other) const;
};

support::Result<ClassInputs> makeInputs(const Work &work, const ClassTrees &trees,
                                        const CacheSize &least = {});

/// The inputs of one class at a time. `work` must outlive it.
class InputPool {
public:
  explicit InputPool(const Work &work);

  /// Switches to a class. True: the inputs have changed.
  support::Result<bool> open(const ClassTrees &trees);

  const std::vector<tree::KvTree> &trees() const { return made_.trees; }
  exec::Inputs &inputs() { return made_.inputs; }
  const exec::Inputs &inputs() const { return made_.inputs; }

private:
  const Work &work_;
  CacheSize shared_; ///< of all classes that share a cache; without tokens: no class does
  ClassInputs made_;
  bool isShared_ = false; ///< describes `made_`
};

} // namespace deft::measure
