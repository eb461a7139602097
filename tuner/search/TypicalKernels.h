#pragma once

#include "tuner/space/Space.h"

namespace deft::search {

/// Kernels of a shape for the start of a search: all if they are few, otherwise one for each choice of rows
/// and boundaries, since plans depend on these. The plan's axes have their first values.
std::vector<space::Point> typicalKernels(const space::Space &space, int shape);

/// How far a point's kernels are from the usual choice: steps of 64 tokens, the deepest ring with room for
/// two blocks, four warps, one launch. Below 0: a deeper ring. 0 on a CPU.
double oddness(const space::Space &space, const space::Point &point);

} // namespace deft::search
