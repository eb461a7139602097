#pragma once

#include "deft/common/key_hook.cuh"
#include "deft/ptx/named_barrier.cuh"
#include "deft/ptx/wgmma.cuh"
#include "deft/sm90/layout.cuh"

/// Keys before the computing warps multiply them: either as copied, or after a hook has replaced them in
/// place.
namespace deft::sm90 {

template <class Config, class Variant> class KeyMaking {
  using L = Layout<Config>;
  static constexpr int kAll = 1; ///< named barrier of the computing warps
  static_assert(!HasKey<Variant> || (L::kGroups == 1 && !kHasBytes<Factored<Config>>),
                "each key is made once, and has room for what it becomes");

  struct TileRows {
    static constexpr int kColumns = L::kKeyColumns;

    static __device__ __forceinline__ unsigned offset(int row, int column) { return L::offset(row, column); }
  };

public:
  /// Makes the keys of 16 tokens of a tile; the same warp then multiplies them.
  static __device__ __forceinline__ void make(const Ring<Config> &ring, const WarpRows<Config, Variant> &rows,
                                              int step, int group) {
    if constexpr (HasKey<Variant>) {
      KeyHook<Config, Variant, TileRows, 32, 16>::apply(rows.params(),
                                                        ring.shared + (ring.keys(step) - ring.base),
                                                        ring.slot(step).records(), rows.kvHead(), 16 * group);
      __syncwarp();
    }
  }

  /// Makes a tile's keys visible to wgmma, which needs a fence after writes of threads. Each warp makes its
  /// group, and all wait for each other.
  static __device__ __forceinline__ void show(const Ring<Config> &ring, const WarpRows<Config, Variant> &rows,
                                              const TileFacts::Head &head, int step, int warp) {
    make(ring, rows, step, warp);
    if (HasKey<Variant> || head.isGathered)
      ptx::fenceAsyncProxy();
    if constexpr (HasKey<Variant>)
      ptx::namedBarrierSync(kAll, 128);
  }
};

} // namespace deft::sm90
