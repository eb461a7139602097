#pragma once

#include "deft/common/warp_rows.cuh"
#include "deft/select/key.cuh"

/// Writes the worth of tokens for a selection, during the attention (abi::Selected::worth).
namespace deft {

/// Whether a kernel writes it; not by default.
template <class Config> constexpr bool kGivesWorth = requires { requires Config::kWorthGroups > 0; };

/// For a warp's 16 rows: the largest score among the heads of a group, for each token that a row sees. It
/// uses a copy of the scores, so results do not change by a bit.
template <class Config, class Variant, bool kGives = kGivesWorth<Config>> class Worth {
  using Rows = WarpRows<Config, Variant>;

public:
  __device__ __forceinline__ Worth(const abi::AttendArgs &args, const Rows &rows) : lane_(threadIdx.x % 32) {
    const abi::Selected &selected = *args.selected;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = rows.row(r);
      const long long group =
          static_cast<long long>(rows.callerIndex(rows.clamped(row))) * Config::kWorthGroups +
          (Config::kWorthGroups == Config::kKvHeads ? rows.kvHead() : rows.headOf(row));
      worth_[r] = rows.isReal(row) ? selected.worth + group * selected.worthStride : nullptr;
      isReal_[r] = __any_sync(~0u, worth_[r] != nullptr);
    }
  }

  /// For groups of 16 tokens from `group` on, with scores in the state after WarpRows::score: `common` of the
  /// row must still be added. Scores that are capped late are still products, and if the tile is `cut`, their
  /// hidden tokens are not hidden yet.
  template <bool kCapsLate, int kTiles>
  __device__ __forceinline__ void give(const Rows &rows, const TokenRecords &tokens, int group,
                                       Fragment<kTiles> s, const float (&common)[2], bool cut) const {
    if constexpr (kCapsLate) {
      rows.forms().cap(s);
      if (cut) {
#pragma unroll
        for (int g = 0; g < kTiles / 2; ++g)
          rows.hide(tokens, group + g, s.template part<2>(2 * g));
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (!isReal_[r]) // the item has at most 8 rows for the warp
        continue;
      float row[2 * kTiles];
#pragma unroll
      for (int i = 0; i < 2 * kTiles; ++i) {
        float x = s.tile[i / 2][2 * r + i % 2];
        x = Rows::kRises ? x + common[r] : x;
        x = Rows::kFoldScale ? x * Variant::kScale : x;
        row[i] = x == x ? x : kLowest;
      }
      spread<2 * kTiles, 1>(tokens, worth_[r], group * 16 + fragmentColumn(lane_), row);
    }
  }

private:
  static constexpr float kLowest = -3.402823466e38f;
  static constexpr int kMembers = Config::kQueryHeads / Config::kWorthGroups; ///< heads in a group
  /// Rows of a fragment in the same group, in as many lanes.
  static constexpr int kLanes = kMembers % 8 == 0 ? 8 : kMembers % 4 == 0 ? 4 : kMembers % 2 == 0 ? 2 : 1;
  static_assert(kMembers == 1 || kMembers == Config::kRatio, "a group is a KV head's heads, or one");

  /// The token of a lane's value i in a row, after the lane's first.
  static __device__ __forceinline__ constexpr int tokenOf(int i) { return i / 2 * 8 + i % 2; }

  /// The maximum over lanes that are `kDistance` or more rows apart. While there are several values, two
  /// lanes exchange halves of them, so that they share the remaining work.
  template <int kCount, int kDistance>
  __device__ __forceinline__ void spread(const TokenRecords &tokens, unsigned *worth, int token,
                                         float (&x)[kCount]) const {
    const bool isSecond = (lane_ / 4 & kDistance) != 0;
    if constexpr (kDistance == kLanes) {
      write(tokens, worth, token, x);
    } else if constexpr (kCount > 1) {
      constexpr int kHalf = kCount / 2;
      float taken[kHalf];
#pragma unroll
      for (int i = 0; i < kHalf; ++i) {
        const float given = isSecond ? x[i] : x[i + kHalf];
        const float kept = isSecond ? x[i + kHalf] : x[i];
        taken[i] = fmaxf(kept, __shfl_xor_sync(~0u, given, 4 * kDistance));
      }
      spread<kHalf, 2 * kDistance>(tokens, worth, token + (isSecond ? tokenOf(kHalf) : 0), taken);
    } else { // the first lane writes the value, the other nothing
      x[0] = fmaxf(x[0], __shfl_xor_sync(~0u, x[0], 4 * kDistance));
      x[0] = isSecond ? -kInfinity : x[0];
      spread<1, 2 * kDistance>(tokens, worth, token, x);
    }
  }

  template <int kCount>
  __device__ __forceinline__ void write(const TokenRecords &tokens, unsigned *worth, int token,
                                        const float (&x)[kCount]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (worth == nullptr || !(x[i] > -kInfinity))
        continue;
      unsigned *to = worth + tokens.position[token + tokenOf(i)];
      if constexpr (kMembers == kLanes)
        *to = select::keyOf(x[i]);
      else // other warps have rows of the group as well
        atomicMax(to, select::keyOf(x[i]));
    }
  }

  const int lane_;
  unsigned *worth_[2]; ///< the rows' arrays by position; null: not a real row
  bool isReal_[2];     ///< whether any of the warp's rows is, in each half of them
};

template <class Config, class Variant> class Worth<Config, Variant, false> {
  using Rows = WarpRows<Config, Variant>;

public:
  __device__ __forceinline__ Worth(const abi::AttendArgs &, const Rows &) {}
  template <bool kCapsLate, int kTiles>
  __device__ __forceinline__ void give(const Rows &, const TokenRecords &, int, const Fragment<kTiles> &,
                                       const float (&)[2], bool) const {}
};

} // namespace deft
