#pragma once

#include "tuner/session/Tune.h"
#include "tuner/sparse/TuneSparse.h"

#include <deft/c/tune.h>

#include <optional>
#include <string>
#include <vector>

/// How a tuner handles sparse layers, and its report to the caller.
namespace deft::api {

/// The outcome of a run: for trees, for sparse layers, or for both.
struct Tuned {
  std::string device, configFile, journal;
  std::vector<session::ClassReport> classes;
  std::optional<sparse::TuneReport> sparse;
  std::vector<std::string> warnings;
  measure::Ended ended = measure::Ended::Complete;
  int measured = 0, reused = 0;
  double seconds = 0;
};

/// With the whole budget.
sparse::TuneOptions sparseOptions(const deft_tune_options &options, int threads);

support::Result<Tuned> tuneSparseAlone(const program::Program &program,
                                       const std::vector<exec::ParamValue> &params,
                                       const sparse::TuneOptions &options,
                                       const deft_tune_listener &listener);

/// After trees; adds the results to their summary and journal. A fault becomes a warning.
void tuneSparseBehind(Tuned &tuned, const program::Program &program,
                      const std::vector<exec::ParamValue> &params, const sparse::TuneOptions &options,
                      const deft_tune_listener &listener);

} // namespace deft::api
