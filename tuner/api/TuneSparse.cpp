#include "tuner/api/TuneSparse.h"

#include "runtime/api/Convert.h"
#include "tuner/api/TuneEnd.h"
#include "tuner/session/Journal.h"
#include "tuner/sparse/ReportJson.h"
#include "tuner/sparse/TuneApart.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>

namespace deft::api {

namespace {

TunedSparse toPublic(const sparse::TuneReport &report) {
  TunedSparse own;
  own.tileTokens = report.tile.tileKv;
  own.stages = report.tile.stages;
  own.warps = report.tile.warps;
  own.isPackaged = report.isPackaged;
  own.tileGain = report.tileGain;
  for (const sparse::TunedLists &one : report.lists)
    own.lists.push_back(
        {one.lists.budget, one.lists.queries, one.itemTokens, one.untunedUs, one.tunedUs, one.gain()});
  own.known = static_cast<int>(report.known.size());
  own.end = toTuneEnd(report.ended);
  own.seconds = report.seconds;
  own.file = report.path;
  return own;
}

support::Result<sparse::TuneReport> tuneSparse(const program::Program &program,
                                               const std::vector<exec::ParamValue> &params,
                                               const sparse::TuneOptions &options,
                                               const TuneListener &listener) {
  const auto start = std::chrono::steady_clock::now();
  sparse::Listener own;
  own.isCancelled = listener.isCancelled;
  if (listener.progress)
    own.progress = [&](const sparse::Status &status) {
      const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      TuneProgress progress;
      progress.stage = "sparse";
      progress.measured = status.done;
      progress.left = status.left;
      progress.secondsLeft = options.seconds > 0 ? std::max(0.0, options.seconds - spent) : -1;
      listener.progress(progress);
    };
  return sparse::tuneApart(program, params, options, own);
}

} // namespace

sparse::TuneOptions sparseOptions(const TuneOptions &options, int threads) {
  sparse::TuneOptions own;
  own.seconds = options.budgetSeconds;
  own.threads = threads;
  own.seed = options.seed;
  own.isFresh = options.isFresh;
  own.places = config_cache::defaultPlaces();
  own.path = options.configFile;
  own.note = options.note;
  return own;
}

Result<TuneSummary> tuneSparseAlone(const program::Program &program,
                                    const std::vector<exec::ParamValue> &params,
                                    const sparse::TuneOptions &options, const TuneListener &listener) {
  const auto report = tuneSparse(program, params, options, listener);
  if (!report)
    return toPublic(report.error());
  TuneSummary summary;
  summary.device = report->device.text();
  summary.sparse = toPublic(*report);
  summary.end = summary.sparse->end;
  summary.seconds = report->seconds;
  summary.warnings = report->notes;
  return summary;
}

void tuneSparseBehind(TuneSummary &summary, const program::Program &program,
                      const std::vector<exec::ParamValue> &params, const sparse::TuneOptions &options,
                      const TuneListener &listener) {
  const auto report = tuneSparse(program, params, options, listener);
  if (!report) {
    summary.warnings.push_back("sparse layers are not tuned: " + report.error().message);
    return;
  }
  summary.sparse = toPublic(*report);
  summary.warnings.insert(summary.warnings.end(), report->notes.begin(), report->notes.end());
  if (summary.end == TuneEnd::Complete || summary.sparse->end == TuneEnd::Cancelled)
    summary.end = summary.sparse->end;
  summary.seconds += report->seconds;
  if (const auto kept = session::appendToJournal(summary.journal, sparse::sparseEvent(*report)); !kept)
    summary.warnings.push_back(kept.error().message);
}

} // namespace deft::api
