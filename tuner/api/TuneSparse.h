#pragma once

#include "tuner/sparse/TuneSparse.h"

#include <deft/tune.hpp>

#include <vector>

/// What a Tuner does of sparse layers.
namespace deft::api {

/// With all of the budget.
sparse::TuneOptions sparseOptions(const TuneOptions &options, int threads);

Result<TuneSummary> tuneSparseAlone(const program::Program &program,
                                    const std::vector<exec::ParamValue> &params,
                                    const sparse::TuneOptions &options, const TuneListener &listener);

/// Behind trees, whose summary and journal get what was found; a fault is a warning of it.
void tuneSparseBehind(TuneSummary &summary, const program::Program &program,
                      const std::vector<exec::ParamValue> &params, const sparse::TuneOptions &options,
                      const TuneListener &listener);

} // namespace deft::api
