#pragma once

#include "tuner/space/Space.h"

namespace deft::search {

/// Kernels of a shape that a search begins with: all where they are few, else one for each way to set rows
/// and boundaries, those being what plans follow from. The plan's axes are at their first values.
std::vector<space::Point> typicalKernels(const space::Space &space, int shape);

} // namespace deft::search
