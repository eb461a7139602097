#pragma once

#include "deft/abi.h"
#include "deft/ptx/convert.cuh"
#include "deft/types.cuh"

/// Merges partial attentions of the same rows: each row's parts are weighted by the exponentials of their
/// logarithms, in the given order, so that the result has the same bits in every run.
namespace deft {

/// 16 bytes of a row as floats. Element is float, f16 or bf16.
template <class Element> struct StatePiece {
  static constexpr int kValues = 8;
  float values[kValues] = {};

  __device__ __forceinline__ void add(float weight, uint4 packed) {
    const unsigned words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 pair = ptx::unpack2<Element>(words[i]);
      values[2 * i] += weight * pair.x;
      values[2 * i + 1] += weight * pair.y;
    }
  }
  __device__ __forceinline__ uint4 pack(float scale) const {
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      words[i] = ptx::pack2<Element>(values[2 * i] * scale, values[2 * i + 1] * scale);
    return {words[0], words[1], words[2], words[3]};
  }
};

template <> struct StatePiece<float> {
  static constexpr int kValues = 4;
  float values[kValues] = {};

  __device__ __forceinline__ void add(float weight, uint4 packed) {
    values[0] += weight * __uint_as_float(packed.x);
    values[1] += weight * __uint_as_float(packed.y);
    values[2] += weight * __uint_as_float(packed.z);
    values[3] += weight * __uint_as_float(packed.w);
  }
  __device__ __forceinline__ uint4 pack(float scale) const {
    return {__float_as_uint(values[0] * scale), __float_as_uint(values[1] * scale),
            __float_as_uint(values[2] * scale), __float_as_uint(values[3] * scale)};
  }
};

template <class Element> class StatesMerge {
  using Piece = StatePiece<Element>;

public:
  static constexpr int kThreads = 128; ///< of a block

  __device__ __forceinline__ explicit StatesMerge(const abi::StatesArgs &args)
      : args_(args), pieces_(args.dim / Piece::kValues), lane_(threadIdx.x % args.lanesOfRow),
        row_((static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x) / args.lanesOfRow) {}

  /// Called by all threads; each row has lanesOfRow lanes of a warp. `out` and `lse` may be those of a part:
  /// a lane reads a value before it overwrites it, and all lanes read the logarithms before one is written.
  __device__ __forceinline__ void merge() const {
    const bool isRow = row_ < args_.rows;
    float shift = 0.f, total = 0.f;
    if (isRow) {
      shift = largestLse();
#pragma unroll 1
      for (int i = 0; i < args_.count; ++i)
        total += weightOf(i, shift);
      const float scale = total == 0.f ? 0.f : 1.f / total; // 0: no part saw a token
#pragma unroll 1
      for (int piece = lane_; piece < pieces_; piece += args_.lanesOfRow)
        mergePiece(piece, shift, scale);
    }
    __syncwarp();
    if (isRow && lane_ == 0 && args_.lse != nullptr)
      args_.lse[row_] = shift + ptx::log2Fast(total) * kLn2; // 0 + -inf if no part saw a token
  }

private:
  /// The shift that keeps the weights in range; 0 if no part saw a token.
  __device__ __forceinline__ float largestLse() const {
    float top = -kInfinity;
#pragma unroll 1
    for (int i = 0; i < args_.count; ++i) {
      const float lse = args_.lses[i][row_];
      top = lse > top ? lse : top;
    }
    return top == -kInfinity ? 0.f : top;
  }

  /// An empty part is (0, -inf): its weight is 0. Computed again for each use: an array for the largest
  /// number of parts would not stay in registers.
  __device__ __forceinline__ float weightOf(int part, float shift) const {
    return ptx::exp2Fast((args_.lses[part][row_] - shift) * kLog2e);
  }

  __device__ __forceinline__ void mergePiece(int piece, float shift, float scale) const {
    const long long at = row_ * pieces_ + piece;
    Piece sum;
#pragma unroll 1
    for (int i = 0; i < args_.count; ++i) {
      const float weight = weightOf(i, shift);
      if (weight != 0.f) // `out` of an empty part is ignored; NaN is passed on
        sum.add(weight, static_cast<const uint4 *>(args_.outs[i])[at]);
    }
    static_cast<uint4 *>(args_.out)[at] = sum.pack(scale);
  }

  const abi::StatesArgs &args_;
  const int pieces_, lane_;
  const long long row_;
};

} // namespace deft
