#pragma once

#include "compiler/config/Config.h"
#include "runtime/config_cache/ConfigChooser.h"
#include "runtime/device/Ceilings.h"
#include "runtime/exec/Inputs.h"
#include "runtime/exec/Selection.h"
#include "runtime/plan/Plan.h"
#include "runtime/program/Program.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/Context.h"

#include <memory>
#include <optional>
#include <string>

namespace deft::cli {

struct RunTimes {
  double medianUs = 0, fastestUs = 0, slowestUs = 0;
  int repeats = 0;
};

/// How a sparse layer runs on a GPU.
struct SparseShape {
  config::PhaseConfig tile;
  int itemTokens = 0;      ///< into which its lists are cut
  bool isTunedCut = false; ///< and not by the rule
};

/// Where `run` runs: what the command needs of it, in the order in which it is called.
class RunBackend {
public:
  virtual ~RunBackend() = default;

  virtual std::string name() const = 0;   ///< "cpu", "cuda"
  virtual std::string device() const = 0; ///< "2 threads", "NVIDIA H200"
  virtual int blocks() const = 0;         ///< that run at a time

  /// The config for a step's tree, and why it is that one; valid until the next call.
  const config_cache::Ruling &choose(const tree::KvTree &tree) { return chooser_.choose(tree); }
  /// The prices of a plan's reported time.
  const config::CostCoefficients &kernelPrices() const { return chooser_.kernelPrices(); }
  /// What the mask shows by the values of its parameters.
  void setReach(const plan::Reach &reach) { chooser_.setReach(reach); }

  /// Takes the cache and the queries of a step; they stay as they are until the next call.
  virtual support::Result<void> load(const exec::Inputs &inputs) = 0;

  /// One run.
  virtual support::Result<void> runOnce(const plan::Plan &plan, exec::Outputs &outputs) = 0;
  /// One run, timed by `repeats` runs more (0: as many as the backend finds right).
  virtual support::Result<RunTimes> run(const plan::Plan &plan, exec::Outputs &outputs, int repeats) = 0;

  /// Whether it has what the two below want, of an attention that selects.
  virtual bool selects() const { return true; }
  /// As run(), of an attention that selects, for lists of the subject's budget.
  virtual support::Result<RunTimes> runSelecting(const plan::Plan &plan, exec::Outputs &outputs,
                                                 exec::Selection &selection, int repeats) = 0;
  /// Over the lists that runSelecting gave last, which are these.
  virtual support::Result<RunTimes> runSparse(const exec::Selection &selection, exec::Outputs &outputs,
                                              int repeats) = 0;
  /// Over lists that a caller hands over, by the plan of the last run.
  virtual support::Result<RunTimes> runGiven(const plan::Plan &plan, const exec::GivenLists &lists,
                                             exec::Outputs &outputs, int repeats) = 0;
  /// Of either; none on a processor, which has neither tiles nor cuts.
  virtual std::optional<SparseShape> sparseShape() const { return std::nullopt; }

  virtual const device::Ceilings *ceilings() const { return nullptr; }

protected:
  explicit RunBackend(config_cache::ConfigChooser chooser) : chooser_(std::move(chooser)) {}
  config_cache::ConfigChooser chooser_;
};

/// What is run, as far as it decides which config that is.
struct RunSubject {
  const program::Program &program;
  const tree::KvTree &firstTree;
  const ConfigSource &configs;
  int budget = 0; ///< tokens of a list; 0: nothing is selected
};

support::Result<std::unique_ptr<RunBackend>> openCpu(Context &context, const RunSubject &subject,
                                                     int threads);

/// Its kernels are those of the first tree's config, also for the trees that come after it. Null without a
/// GPU, which is an error where one `isRequired`.
support::Result<std::unique_ptr<RunBackend>> openCuda(Context &context, const RunSubject &subject,
                                                      bool isRequired);

/// The one of this name, "cpu" or "cuda"; empty: a GPU where there is one.
support::Result<std::unique_ptr<RunBackend>> openBackend(Context &context, const RunSubject &subject,
                                                         const std::string &name, int threads);

} // namespace deft::cli
