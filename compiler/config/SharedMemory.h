#pragma once

#include "compiler/config/Config.h"

namespace deft::config {

/// Dynamic shared memory of one block of the attend kernel, in bytes. The device's twin is
/// templates/deft/sm80/shared_layout.cuh; every generated kernel asserts that both agree.
int smemBytes(int headDim, const PhaseConfig &phase);

/// Warps of a block of the merge kernel, which uses no dynamic shared memory. Twin: deft::kMergeWarps.
inline constexpr int kMergeWarps = 4;

} // namespace deft::config
