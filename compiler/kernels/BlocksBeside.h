#pragma once

#include <bit>

/// Blocks of the kernels beside an attention's own: the merge, and the one that applies a hook of q. Neither
/// uses dynamic shared memory.
namespace deft::kernels {

/// Warps of a block of the merge. Twin: deft::kMergeWarps.
inline constexpr int kMergeWarps = 4;

/// Warps of a block of the kernel that applies a hook of q. Twin: deft::kQueryWarps.
inline constexpr int kQueryWarps = 16;

/// Elements of a query's head, at most, where a hook makes its rows: a warp holds a row.
inline constexpr int kMostQueryDim = 256;

/// Heads of a query that a warp of that kernel makes: four rounds of as many rows as have a lane for each 8
/// elements. Twin: deft::QueryHeads::kHeads.
constexpr int queryHeadsOfWarp(int keyDim) {
  return 4 * 32 / static_cast<int>(std::bit_ceil(static_cast<unsigned>(keyDim / 8)));
}

} // namespace deft::kernels
