#pragma once

#include "compiler/kernels/Family.h"

namespace deft::kernels {

/// Warps of a block of the sm90 family: one warpgroup copies and two compute; of light blocks, two of which
/// share a multiprocessor, one computes; of tall ones three. Twin: deft::sm90::Layout.
inline constexpr int kSm90Warps = 12, kSm90LightWarps = 8, kSm90TallWarps = 16;

// Of a phase of the sm90 family.
inline bool isLight(const PhaseConfig &phase) { return phase.warps == kSm90LightWarps; }
inline bool isTall(const PhaseConfig &phase) { return phase.warps == kSm90TallWarps; }

} // namespace deft::kernels
