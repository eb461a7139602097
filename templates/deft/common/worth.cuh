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
    s.forEach([&](float &x, int r, int) {
      x = Rows::kRises ? x + common[r] : x;
      x = Rows::kFoldScale ? x * Variant::kScale : x;
      x = x == x ? x : kLowest;
    });
    spread<kTiles, 1>(tokens, group * 16 + fragmentColumn(lane_), s);
  }

private:
  static constexpr float kLowest = -3.402823466e38f;
  static constexpr int kMembers = Config::kQueryHeads / Config::kWorthGroups; ///< heads in a group
  /// Rows of a fragment in the same group, in as many lanes.
  static constexpr int kLanes = kMembers % 8 == 0 ? 8 : kMembers % 4 == 0 ? 4 : kMembers % 2 == 0 ? 2 : 1;
  static_assert(kMembers == 1 || kMembers == Config::kRatio, "a group is a KV head's heads, or one");

  /// The maximum over lanes that are `kDistance` or more rows apart. While there are several tiles, two lanes
  /// exchange halves of them, so that they share the remaining work.
  template <int kTiles, int kDistance>
  __device__ __forceinline__ void spread(const TokenRecords &tokens, int token, Fragment<kTiles> &s) const {
    if constexpr (kDistance == kLanes) {
      write<kTiles>(tokens, token, s);
    } else if constexpr (kTiles > 1) {
      constexpr int kHalf = kTiles / 2;
      const bool takesLast = (lane_ / 4 & kDistance) != 0;
      Fragment<kHalf> taken;
#pragma unroll
      for (int n = 0; n < kHalf; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          const float given = takesLast ? s.tile[n][c] : s.tile[n + kHalf][c];
          const float kept = takesLast ? s.tile[n + kHalf][c] : s.tile[n][c];
          taken.tile[n][c] = fmaxf(kept, __shfl_xor_sync(~0u, given, 4 * kDistance));
        }
      spread<kHalf, 2 * kDistance>(tokens, token + (takesLast ? kHalf * 8 : 0), taken);
    } else { // with one tile, the first lane writes it all, the others nothing
      const bool leaves = (lane_ / 4 & kDistance) != 0;
      s.forEach([&](float &x, int, int) {
        x = fmaxf(x, __shfl_xor_sync(~0u, x, 4 * kDistance));
        x = leaves ? -kInfinity : x;
      });
      spread<kTiles, 2 * kDistance>(tokens, token, s);
    }
  }

  template <int kTiles>
  __device__ __forceinline__ void write(const TokenRecords &tokens, int token, Fragment<kTiles> &s) const {
    s.forEach([&](float &x, int r, int column) {
      if (worth_[r] == nullptr || !(x > -kInfinity))
        return;
      unsigned *to = worth_[r] + tokens.position[token + column];
      if constexpr (kMembers == kLanes)
        *to = select::keyOf(x);
      else // other warps have rows of the group as well
        atomicMax(to, select::keyOf(x));
    });
  }

  const int lane_;
  unsigned *worth_[2]; ///< the rows' arrays by position; null: not a real row
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
