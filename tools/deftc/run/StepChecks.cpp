#include "tools/deftc/run/StepChecks.h"

#include "runtime/exec/FiniteCheck.h"
#include "runtime/exec/ParamRanges.h"
#include "tools/deftc/common/Progress.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace deft::cli {

using support::Result;

namespace {

/// What a check takes at most, unless all is asked for; a single query or pass may take longer.
constexpr double kMostCheckSeconds = 30;

} // namespace

reference::CheckOptions StepChecks::options() const {
  // The oracle takes some 200 ns for a (row, token) pair: a bound keeps large trees to a few seconds.
  constexpr long long kPairsPerThread = 20'000'000;
  reference::CheckOptions check;
  check.threads = threads_;
  check.mostRowTokens =
      options_.isAllChecked() ? 0 : std::max(kPairsPerThread * threads_ / options_.steps, 1LL);
  check.deadline = deadline();
  return check;
}

reference::Deadline StepChecks::deadline() const {
  if (options_.isAllChecked())
    return std::nullopt;
  const std::chrono::duration<double> share(kMostCheckSeconds / 2 / options_.steps);
  const auto now = std::chrono::steady_clock::now();
  return now + std::chrono::duration_cast<std::chrono::steady_clock::duration>(share);
}

Result<reference::CheckReport> StepChecks::check(const StepRun &step, int turn) const {
  Progress progress(context_, "checking");
  reference::CheckOptions check = options();
  check.progress = [&](long long done, long long of) { progress.at(done, of); };
  auto report = reference::check(step.variant, step.tree, step.inputs, step.outputs, check);
  report.notFinite = notFinite(step);
  if (!report.isDefined()) // counting inputs would tell the same of the spec, and have other values
    return report;
  check.deadline = deadline();
  auto counted = count(step, turn, check);
  if (!counted)
    return counted.error();
  report.count = std::move(*counted);
  return report;
}

/// Of all queries, also where a sample is compared: a softmax hides what a NaN does to a row.
std::string StepChecks::notFinite(const StepRun &step) const {
  const std::vector<abi::ParamSlot> params = step.inputs.paramSlots(step.variant);
  const auto found = exec::findNotFinite(
      step.variant, step.plan, exec::reachOf(step.variant, step.inputs.params),
      exec::InputView::of(step.inputs, step.variant, params),
      {step.outputs.out.data(), step.variant.withLse ? step.outputs.lse.data() : nullptr});
  return found ? found->message : "";
}

/// Long paths take several passes, each another run: of many steps, or of a tree that takes many, not all are
/// made, and each step makes others.
Result<reference::CountReport> StepChecks::count(const StepRun &step, int turn,
                                                 const reference::CheckOptions &check) const {
  constexpr int kMostPasses = 16;
  reference::Counting counting(step.variant, step.tree, step.inputs, {threads_, check.mostRowTokens});
  const auto run = [&](exec::Inputs &inputs, exec::Outputs &outputs) -> Result<void> {
    if (auto loaded = step.backend.load(inputs); !loaded)
      return loaded;
    return step.backend.runOnce(step.plan, outputs);
  };
  const int most = options_.isAllChecked() ? 0 : std::max(kMostPasses / options_.steps, 1);
  if (auto ran = reference::runPasses(counting, run, most, turn, check.deadline); !ran)
    return ran.error();
  auto report = counting.judge();
  if (auto loaded = step.backend.load(step.inputs); !loaded)
    return loaded.error();
  return report;
}

double badness(const reference::CheckReport &report) {
  if (!report.isDefined())
    return std::numeric_limits<double>::infinity();
  const double ofCount = !report.count            ? 0
                         : report.count->passed() ? report.count->worst
                                                  : std::numeric_limits<double>::infinity();
  return std::max({report.share(), report.lseShare(), ofCount});
}

} // namespace deft::cli
