#pragma once

#include "tuner/report/SessionData.h"

#include <string>

/// The space and the search as drawings: SVG elements, empty where there is nothing to show. Times are shares
/// of the untuned config's, so that trees of all sizes have one scale.
namespace deft::report {

/// All classes: what the winner takes of the untuned time.
std::string gainPlot(const SessionData &session);

/// Candidate after candidate, and the best so far.
std::string pathPlot(const ClassData &one);

/// The best time with each chunk, a line for each partition.
std::string chunkPlot(const ClassData &one);

/// The best time with each tile_q and tile_kv of a phase; where only one tile_kv was tried, with each tile_q
/// and chunk. `phase`: 0 is the first, that of many rows, -1 the last.
std::string tilePlot(const ClassData &one, int phase);

/// Whether some candidate that was timed has two phases that are kernels of their own.
bool hasTwoKernels(const ClassData &one);

} // namespace deft::report
