#pragma once

#include "deft/ptx/forget.cuh"
#include "deft/ptx/ldmatrix.cuh"
#include "deft/ptx/wgmma_bytes.cuh"
#include "deft/sm90/layout.cuh"

namespace deft::sm90 {

/// How the computing warps transpose the bytes of V; each has 16 tokens of a tile. Row d, of 128 bytes, gets
/// column d of 64 tokens and of 64 others. ldmatrix transposes pairs of bytes, which are then separated. That
/// gives a lane's four tokens the order of its weights (fragment.cuh): two neighbouring tokens, and the two
/// that are 8 further on.
///
/// `kIsHeld`: values that depend on the lane stay in registers; otherwise each tile recomputes them.
template <class Config, bool kIsHeld> class ValueTransposition {
  using L = Layout<Config>;

public:
  static constexpr int kTimes = Config::kValueDim / 32; ///< pairs of 16-byte columns
  /// Pairs of a tile's bytes in the form that ldmatrix returns.
  template <int kCount> struct Pairs {
    unsigned of[kCount][4];
  };

  __device__ __forceinline__ ValueTransposition(const Ring<Config> &ring, int warp, int lane) : ring_(ring) {
    // Lanes of the upper half write odd columns first; otherwise two lanes would use the same bank.
    isUpper_ = lane / 16 != 0;
    const int token = warp * 16 + lane % 16, column = isUpper_, row = lane / 4 * 2 + column;
    from_ = token * 128 + (column ^ token % 8) * 16;
    to_ = row * 128 + (warp ^ row % 8) * 16 + lane % 4 * 4;
    if constexpr (kIsHeld) {
      ptx::forgetHere(from_);
      ptx::forgetHere(to_);
    }
  }

  /// Loads columns `first`, first + 1, ..., in pairs, from the values in a stage.
  template <int kCount>
  __device__ __forceinline__ void load(int step, int first, Pairs<kCount> &pairs) const {
    const unsigned from = ring_.staged(step) + L::kStagedValueOffset + from_;
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      ptx::ldmatrix4Transposed(pairs.of[i], from ^ (first + i) * 32);
  }
  /// Stores to the first or the second half of the rows.
  template <int kCount>
  __device__ __forceinline__ void store(int half, int first, const Pairs<kCount> &pairs) const {
    char *const values = ring_.shared + (ring_.values(0) - ring_.base);
    const unsigned to = to_ ^ half * 64, beside = to ^ (128 | 16); // the next column has another swizzle
#pragma unroll
    for (int i = 0; i < kCount; ++i)
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        char *const rows = values + (2 * (first + i) + odd) * 16 * 128;
        const unsigned low = pairs.of[i][2 * odd], high = pairs.of[i][2 * odd + 1];
        *reinterpret_cast<unsigned *>(rows + to) = ptx::bytesOfPairs(low, high, isUpper_);
        *reinterpret_cast<unsigned *>(rows + beside) = ptx::bytesOfPairs(low, high, !isUpper_);
      }
  }

  /// Transposes a whole tile, kCount pairs of columns at a time.
  template <int kCount> __device__ __forceinline__ void transpose(int step, int half) const {
    static_assert(kTimes % kCount == 0);
#pragma unroll
    for (int first = 0; first < kTimes; first += kCount) {
      Pairs<kCount> pairs;
      load(step, first, pairs);
      store(half, first, pairs);
    }
  }

private:
  const Ring<Config> &ring_;
  int from_, to_;
  bool isUpper_;
};

} // namespace deft::sm90
