#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/reference/Check.h"
#include "runtime/reference/Counting.h"
#include "tools/deftc/common/Context.h"
#include "tools/deftc/run/RunBackend.h"
#include "tools/deftc/run/RunOptions.h"

#include <string>

namespace deft::cli {

/// One step of a run, as it was planned and run.
struct StepRun {
  RunBackend &backend;
  const spec::Variant &variant;
  const tree::KvTree &tree;
  const plan::Plan &plan;
  exec::Inputs &inputs;
  const exec::Outputs &outputs;
};

/// How the steps of a run are checked. Unless all is asked for, of large trees a sample is, and after some
/// time what is left is left out: half a step's share of that for each call.
class StepChecks {
public:
  StepChecks(Context &context, const RunOptions &options, int threads)
      : context_(context), options_(options), threads_(threads) {}

  reference::CheckOptions options() const;
  /// By the oracle, of the step's inputs and of counting ones. `turn`: how many steps came before it.
  support::Result<reference::CheckReport> check(const StepRun &step, int turn) const;

private:
  reference::Deadline deadline() const;
  std::string notFinite(const StepRun &step) const;
  support::Result<reference::CountReport> count(const StepRun &step, int turn,
                                                const reference::CheckOptions &check) const;

  Context &context_;
  const RunOptions &options_;
  int threads_;
};

/// Of a report that counted: by how much it is off what is allowed, to find the worst of several.
double badness(const reference::CheckReport &report);

} // namespace deft::cli
