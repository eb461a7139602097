#pragma once

#include "compiler/kernels/Family.h"

#include <bit>

namespace deft::kernels {

/// Dynamic shared memory of one block of a GPU's attend kernel, in bytes. Every generated kernel asserts that
/// its header counts the same.
inline int smemBytes(const KernelShape &shape, const PhaseConfig &phase, Families all = families()) {
  return familyOf(phase, all).smemBytes(shape, phase);
}

/// Shared memory for each of two blocks on a multiprocessor.
inline int halfSmem(const target::Target &target) { return target.smemPerSm / 2 - target.smemReserved; }

/// Warps of a block of the merge kernel, which uses no dynamic shared memory. Twin: deft::kMergeWarps.
inline constexpr int kMergeWarps = 4;

/// Likewise of the kernel that applies a hook of q. Twin: deft::kQueryWarps.
inline constexpr int kQueryWarps = 16;

/// Heads of a query that a warp of that kernel makes: four rounds of as many rows as have a lane for each 8
/// elements. Twin: deft::QueryRows::kHeads.
inline int queryHeadsOfWarp(int keyDim) {
  return 4 * 32 / static_cast<int>(std::bit_ceil(static_cast<unsigned>(keyDim / 8)));
}

} // namespace deft::kernels
