#pragma once

#include "compiler/kernels/Family.h"

namespace deft::kernels {

/// Warps of a block of family sm90: one warpgroup copies, and two compute. In light blocks, two of which
/// share a multiprocessor, one computes; in tall blocks three. Twin: deft::sm90::Layout.
inline constexpr int kSm90Warps = 12, kSm90LightWarps = 8, kSm90TallWarps = 16;

// For a phase of family sm90:
inline bool isLight(const PhaseConfig &phase) { return phase.warps == kSm90LightWarps; }
inline bool isTall(const PhaseConfig &phase) { return phase.warps == kSm90TallWarps; }

} // namespace deft::kernels
