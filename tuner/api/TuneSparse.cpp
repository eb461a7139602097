#include "tuner/api/TuneSparse.h"

#include "runtime/api/Call.h"
#include "tuner/session/Journal.h"
#include "tuner/sparse/ReportJson.h"
#include "tuner/sparse/TuneApart.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>

namespace deft::api {

namespace {

support::Result<sparse::TuneReport> tuneSparse(const program::Program &program,
                                               const std::vector<exec::ParamValue> &params,
                                               const sparse::TuneOptions &options,
                                               const deft_tune_listener &to) {
  const auto start = std::chrono::steady_clock::now();
  sparse::Listener own;
  if (to.is_cancelled)
    own.isCancelled = [&to] { return to.is_cancelled(to.context) != 0; };
  if (to.progress)
    own.progress = [&](const sparse::Status &status) {
      const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      deft_tune_progress progress{};
      progress.size = sizeof progress;
      progress.tree_class = "";
      progress.stage = "sparse";
      progress.measured = status.done;
      progress.left = status.left;
      progress.seconds_left = options.seconds > 0 ? std::max(0.0, options.seconds - spent) : -1;
      to.progress(to.context, &progress);
    };
  return sparse::tuneApart(program, params, options, own);
}

} // namespace

sparse::TuneOptions sparseOptions(const deft_tune_options &options, int threads) {
  sparse::TuneOptions own;
  own.seconds = options.budget_seconds;
  own.threads = threads;
  own.seed = options.seed;
  own.isFresh = options.is_fresh != 0;
  own.places = config_cache::defaultPlaces();
  own.path = textOr(options.config_file, "");
  own.note = textOr(options.note, "");
  return own;
}

support::Result<Tuned> tuneSparseAlone(const program::Program &program,
                                       const std::vector<exec::ParamValue> &params,
                                       const sparse::TuneOptions &options,
                                       const deft_tune_listener &listener) {
  auto report = tuneSparse(program, params, options, listener);
  if (!report)
    return report.error();
  Tuned tuned;
  tuned.device = report->device.text();
  tuned.ended = report->ended;
  tuned.seconds = report->seconds;
  tuned.warnings = report->notes;
  tuned.sparse = std::move(*report);
  return tuned;
}

void tuneSparseBehind(Tuned &tuned, const program::Program &program,
                      const std::vector<exec::ParamValue> &params, const sparse::TuneOptions &options,
                      const deft_tune_listener &listener) {
  auto report = tuneSparse(program, params, options, listener);
  if (!report) {
    tuned.warnings.push_back("sparse layers are not tuned: " + report.error().message);
    return;
  }
  tuned.warnings.insert(tuned.warnings.end(), report->notes.begin(), report->notes.end());
  if (tuned.ended == measure::Ended::Complete || report->ended == measure::Ended::Interrupted)
    tuned.ended = report->ended;
  tuned.seconds += report->seconds;
  if (const auto kept = session::appendToJournal(tuned.journal, sparse::sparseEvent(*report)); !kept)
    tuned.warnings.push_back(kept.error().message);
  tuned.sparse = std::move(*report);
}

} // namespace deft::api
