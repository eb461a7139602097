#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/exec/Inputs.h"
#include "runtime/tree/CachePlacement.h"
#include "runtime/tree/KvTree.h"
#include "tools/deftc/common/Context.h"
#include "tools/deftc/run/RunOptions.h"
#include "tuner/replay/ServedCache.h"
#include "tuner/replay/TreeSteps.h"

#include <cstdint>
#include <variant>
#include <vector>

namespace deft::cli {

/// The file or the workload that is asked for, at its first step, which has as many steps as are asked for.
support::Result<replay::TreeSteps> openTrees(Context &context, const RunOptions &options);

/// An error where the machine has no memory for so many tokens and queries at least.
support::Result<void> checkRoom(const spec::Variant &variant, std::int64_t tokens, std::size_t queries);

/// The tree of a step, and what a run reads of it. One tree: its tokens have their values, random ones or
/// those of files, everything beside them is NaN. Several steps share a cache, in which the tree moves about.
class StepInputs {
public:
  static support::Result<StepInputs> open(Context &context, const RunOptions &options,
                                          const spec::Variant &variant, replay::TreeSteps steps,
                                          std::vector<exec::ParamValue> params, int threads);

  /// Of a tree that has been placed. Values are random ones, or of the files that the options name.
  static support::Result<StepInputs> ofPlaced(Context &context, const RunOptions &options,
                                              const spec::Variant &variant, replay::TreeSteps steps,
                                              const tree::CachePlacement &placement,
                                              std::vector<exec::ParamValue> params, int threads);

  const tree::KvTree &tree() const;
  exec::Inputs &inputs() { return inputs_; }

  /// Goes to the next step, of several.
  support::Result<void> next(const spec::Variant &variant);

private:
  using Place = std::variant<tree::KvTree, replay::ServedCache>;
  StepInputs(replay::TreeSteps steps, Place place, exec::Inputs inputs);
  static support::Result<StepInputs> ofTree(Context &context, const RunOptions &options,
                                            const spec::Variant &variant, replay::TreeSteps steps,
                                            std::vector<exec::ParamValue> params, int threads);
  static support::Result<StepInputs> ofSteps(const RunOptions &options, const spec::Variant &variant,
                                             replay::TreeSteps steps, std::vector<exec::ParamValue> params,
                                             int threads);
  void countQueries();

  replay::TreeSteps steps_;
  Place place_;
  exec::Inputs inputs_;
};

} // namespace deft::cli
