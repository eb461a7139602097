#pragma once

#include "tuner/space/Space.h"

namespace deft::search {

/// Kernels of a shape that a search begins with: all where they are few, else one for each way to set rows
/// and boundaries, those being what plans follow from. The plan's axes are at their first values.
std::vector<space::Point> typicalKernels(const space::Space &space, int shape);

/// How far a point's kernels are from what usually is right: steps of 64 tokens, a ring as deep as leaves
/// room for two blocks, four warps, one launch. Below 0: a deeper ring. 0 on a CPU.
double oddness(const space::Space &space, const space::Point &point);

} // namespace deft::search
