#pragma once

#include <bit>

/// Blocks of two small kernels next to an attention's own: the merge, and the kernel that applies a hook of
/// q. Neither uses dynamic shared memory.
namespace deft::kernels {

/// Warps of a block of the merge. Twin: deft::kMergeWarps.
inline constexpr int kMergeWarps = 4;

/// Warps of a block of the kernel that applies a hook of q. Twin: deft::kQueryWarps.
inline constexpr int kQueryWarps = 16;

/// The most elements of a query head for which a hook can make rows: a warp holds a row.
inline constexpr int kMostQueryDim = 256;

/// Query heads that one warp of that kernel makes: four rounds of rows, with a lane for every 8 elements.
/// Twin: deft::QueryHeads::kHeads.
constexpr int queryHeadsOfWarp(int keyDim) {
  return 4 * 32 / static_cast<int>(std::bit_ceil(static_cast<unsigned>(keyDim / 8)));
}

} // namespace deft::kernels
