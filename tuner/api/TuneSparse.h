#pragma once

#include "tuner/session/Tune.h"
#include "tuner/sparse/TuneSparse.h"

#include <deft/c/tune.h>

#include <optional>
#include <string>
#include <vector>

/// What a tuner does of sparse layers, and what it tells its caller of a run.
namespace deft::api {

/// What became of a run: of trees, of sparse layers, or of both.
struct Tuned {
  std::string device, configFile, journal;
  std::vector<session::ClassReport> classes;
  std::optional<sparse::TuneReport> sparse;
  std::vector<std::string> warnings;
  measure::Ended ended = measure::Ended::Complete;
  int measured = 0, reused = 0;
  double seconds = 0;
};

/// With all of the budget.
sparse::TuneOptions sparseOptions(const deft_tune_options &options, int threads);

support::Result<Tuned> tuneSparseAlone(const program::Program &program,
                                       const std::vector<exec::ParamValue> &params,
                                       const sparse::TuneOptions &options,
                                       const deft_tune_listener &listener);

/// Behind trees, whose summary and journal get what was found; a fault is a warning of it.
void tuneSparseBehind(Tuned &tuned, const program::Program &program,
                      const std::vector<exec::ParamValue> &params, const sparse::TuneOptions &options,
                      const deft_tune_listener &listener);

} // namespace deft::api
