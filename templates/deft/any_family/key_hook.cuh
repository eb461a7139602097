#pragma once

#include "deft/any_family/formed_scores.cuh"
#include "deft/ptx/convert.cuh"

/// The hook `key`: K in shared memory becomes what it makes of it, in place, before anybody multiplies it.
namespace deft {

template <class Variant>
concept HasKey =
    requires(const typename Variant::Params &params) { Variant::key(params, 0.f, 0.f, 0.f, 0.f, 0, 0, 0); };

/// Of kTokens tokens, by kThreads threads. Rows says where a column of 8 elements of a token's row lies.
///
/// A thread has two such columns, half a row apart: all partners of each other. Which ones they are stays the
/// same from row to row, so what depends on dims alone is computed once a tile.
template <class Config, class Variant, class Rows, int kThreads, int kTokens> class KeyHook {
  using Query = typename Config::Query;
  using Key = typename Config::Key;
  static_assert(sizeof(Key) == 2 && kIsSame<Query, Key>, "what is made has its room");

  static constexpr int kHalf = Rows::kColumns / 2; ///< columns of half a row
  static_assert(Rows::kColumns % 2 == 0, "a column's partners are a column");
  /// Lanes of a row: neighbours in a warp, which sum up its squares; where halves have not as many columns,
  /// the last ones have none.
  static constexpr __device__ int lanesOf(int columns) {
    int lanes = 1;
    while (lanes < columns)
      lanes *= 2;
    return lanes;
  }
  static constexpr int kLanes = lanesOf(kHalf);
  static constexpr int kRowsAtOnce = kThreads / kLanes;

public:
  /// Of the tokens from `begin` on of a tile `keys`, of which `tokens` tells the positions. Whoever reads
  /// them then waits for all that make some.
  static __device__ __forceinline__ void apply(const typename Variant::Params &params, char *keys,
                                               const TokenRecords &tokens, int kvHead, int begin) {
    const int column = static_cast<int>(threadIdx.x % kLanes);
    const bool hasColumn = kLanes == kHalf || column < kHalf;
#pragma unroll 1
    for (int first = 0; first < kTokens; first += kRowsAtOnce) { // all lanes of a warp, or none
      const int at = first + static_cast<int>(threadIdx.x % kThreads / kLanes), token = begin + at;
      const bool isThere = hasColumn && (kTokens % kRowsAtOnce == 0 || at < kTokens);
      uint4 *const low = reinterpret_cast<uint4 *>(keys + Rows::offset(isThere ? token : 0, column)),
                   *const high =
                       reinterpret_cast<uint4 *>(keys + Rows::offset(isThere ? token : 0, column + kHalf));
      Column a{}, b{};
      if (isThere) {
        a.unpack(*low);
        b.unpack(*high);
      }
      float rms = 0.f;
      if constexpr (Variant::kKeyReadsRms)
        rms = rootMeanSquare(a.squares() + b.squares());
      if (isThere) {
        const Site site{params, rms, tokens.position[token], kvHead};
        *low = site.make(a, b, 8 * column);
        *high = site.make(b, a, 8 * (column + kHalf));
      }
    }
  }

private:
  struct Column {
    float x[8];

    __device__ __forceinline__ void unpack(const uint4 &packed) {
      const unsigned words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 two = ptx::unpack2<Key>(words[i]);
        x[2 * i] = two.x;
        x[2 * i + 1] = two.y;
      }
    }
    __device__ __forceinline__ float squares() const {
      float sum = 0.f;
#pragma unroll
      for (const float one : x)
        sum = fmaf(one, one, sum);
      return sum;
    }
  };

  /// What the elements of a row have in common.
  struct Site {
    const typename Variant::Params &params;
    float rms;
    int position, kvHead;

    /// A column of the row from `dim` on, whose partners are `half`.
    __device__ __forceinline__ uint4 make(const Column &own, const Column &half, int dim) const {
      unsigned words[4];
#pragma unroll
      for (int i = 0; i < 8; i += 2)
        words[i / 2] = ptx::pack2<Query>(element(own, half, i, dim), element(own, half, i + 1, dim));
      return make_uint4(words[0], words[1], words[2], words[3]);
    }
    __device__ __forceinline__ float element(const Column &own, const Column &half, int i, int dim) const {
      return Variant::key(params, own.x[i], half.x[i], own.x[i ^ 1], rms, dim + i, position, kvHead);
    }
  };

  static __device__ __forceinline__ float rootMeanSquare(float squares) {
#pragma unroll
    for (int step = kLanes / 2; step > 0; step /= 2)
      squares += __shfl_xor_sync(~0u, squares, step);
    return sqrtf(squares * (1.f / Config::kKeyDim));
  }
};

} // namespace deft
