#pragma once

#include "tuner/report/SessionData.h"

#include <string>

/// Drawings of the space and the search, as SVG elements; empty if there are no data. Times are relative to
/// the untuned config's, so that trees of all sizes share a scale.
namespace deft::report {

/// For all classes, the winner's time relative to the untuned one.
std::string gainPlot(const SessionData &session);

/// The candidates in order, and the best so far.
std::string pathPlot(const ClassData &one);

/// The best time with each chunk, a line for each partition.
std::string chunkPlot(const ClassData &one);

/// The best time for each tile_q and tile_kv of a phase; if only one tile_kv was tried, for each tile_q and
/// chunk. `phase`: 0 is the first one, for many rows, -1 the last.
std::string tilePlot(const ClassData &one, int phase);

/// Whether some timed candidate has two phases with different kernels.
bool hasTwoKernels(const ClassData &one);

} // namespace deft::report
