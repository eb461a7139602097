#pragma once

#include "deft/common/formed_scores.cuh"
#include "deft/partner_columns.cuh"

/// The hook `key`: it transforms K in shared memory in place, before any product.
namespace deft {

template <class Variant>
concept HasKey =
    requires(const typename Variant::Params &params) { Variant::key(params, 0.f, 0.f, 0.f, 0.f, 0, 0, 0); };

/// For kTokens tokens, by kThreads threads. Rows gives the place of a column of 8 elements in a token's row.
template <class Config, class Variant, class Rows, int kThreads, int kTokens> class KeyHook {
  using Query = typename Config::Query;
  using Key = typename Config::Key;
  static_assert(sizeof(Key) == 2 && kIsSame<Query, Key>, "what is made has its room");

  static constexpr int kHalf = Rows::kColumns / 2; ///< columns of half a row
  static_assert(Rows::kColumns % 2 == 0, "a column's partners are a column");
  static constexpr int kLanes = lanesOfRow(kHalf);
  static constexpr int kRowsAtOnce = kThreads / kLanes;

public:
  /// Transforms the tokens from `begin` on in the tile `keys`; `tokens` has their positions. A reader must
  /// then wait for all threads that transform keys.
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
      Own a{}, b{};
      if (isThere) {
        unpack(a, *low);
        unpack(b, *high);
      }
      float rms = 0.f;
      if constexpr (Variant::kKeyReadsRms)
        rms = rootMeanSquare<kLanes, Config::kKeyDim>(a.squares() + b.squares());
      if (isThere) {
        const Site site{params, rms, tokens.position[token], kvHead};
        *low = site.make(a, b, 8 * column);
        *high = site.make(b, a, 8 * (column + kHalf));
      }
    }
  }

private:
  using Own = Column<Key, 8>;

  static __device__ __forceinline__ void unpack(Own &column, const uint4 &packed) {
    column.unpack({packed.x, packed.y, packed.z, packed.w});
  }

  /// The hook's arguments that all elements of a row share.
  struct Site {
    const typename Variant::Params &params;
    float rms;
    int position, kvHead;

    /// Makes a column of the row from `dim` on; `half` holds its partners.
    __device__ __forceinline__ uint4 make(const Own &own, const Own &half, int dim) const {
      unsigned words[4];
      makeColumn(own, half, words, [&](float x, float other, float pair, int i) {
        return Variant::key(params, x, other, pair, rms, dim + i, position, kvHead);
      });
      return make_uint4(words[0], words[1], words[2], words[3]);
    }
  };
};

} // namespace deft
