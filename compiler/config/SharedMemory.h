#pragma once

#include "compiler/config/Config.h"
#include "compiler/target/Target.h"

namespace deft::config {

/// Dynamic shared memory of one block of the attend kernel, in bytes. The device's twins are
/// templates/deft/sm80/shared_layout.cuh and sm90/layout.cuh; every generated kernel asserts that both agree.
int smemBytes(int headDim, const PhaseConfig &phase);

/// Warps of a block of the sm90 family: one warpgroup copies and two compute; of light blocks, two of which
/// share a multiprocessor, one computes. Twin: deft::sm90::Layout.
inline constexpr int kSm90Warps = 12, kSm90LightWarps = 8;

inline bool isLight(const PhaseConfig &phase) {
  return phase.family == Family::Sm90 && phase.warps == kSm90LightWarps;
}

/// Shared memory for each of two blocks on a multiprocessor.
inline int halfSmem(const target::Target &target) { return target.smemPerSm / 2 - target.smemReserved; }

/// Warps of a block of the merge kernel, which uses no dynamic shared memory. Twin: deft::kMergeWarps.
inline constexpr int kMergeWarps = 4;

} // namespace deft::config
