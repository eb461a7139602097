#pragma once

#include "deft/common/warp_rows.cuh"
#include "deft/ptx/wgmma.cuh"
#include "deft/sm90_latent/layout.cuh"

/// The work that computing warps for many rows (consumer.cuh) and for few (few_rows.cuh) have in common.
namespace deft::sm90_latent {

template <class Config, class Variant> class ComputingWarp {
protected:
  using L = Layout<Config>;
  using Rows = WarpRows<Config, Variant>;
  using Params = typename Variant::Params;
  /// How the warp's rows see a tile.
  struct Seen {
    bool isCut;    ///< some rows do not see the whole tile
    bool isRising; ///< positions rise by one from token to token, if the rows use that
  };

  /// `odd`: the last bit of the unit's number.
  __device__ __forceinline__ ComputingWarp(const abi::AttendArgs &args, const Params &params,
                                           const Ring<Config> &ring, int odd)
      : args_(args), ring_(ring), odd_(odd), group_(groupOfWarp()), warp_(threadIdx.x / 32 % 4),
        lane_(threadIdx.x % 32), rows_(args, params, head().item, head().heads, firstRow()) {
    if constexpr (Rows::kNeedsRow) {
      int position[2] = {}, caller[2] = {};
      if constexpr (Rows::kNeedsQuery) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int at = rows_.clamped(rows_.row(r));
          position[r] = head().queryPos[at];
          caller[r] = head().callerIndex[at];
        }
      }
      rows_.setQueries(position, caller);
    }
  }

  /// The unit's data, in shared memory.
  __device__ __forceinline__ const UnitHead<Config> &head() const { return ring_.head(odd_); }
  /// The first of the warp's 16 rows. If the unit has at most 16, every warp has all of them.
  __device__ __forceinline__ int firstRow() const { return kHasFewRows<Config> ? 0 : warp_ * 16; }

  /// One arrival for the warp.
  __device__ __forceinline__ void arrive(unsigned barrier) const {
    __syncwarp();
    if (lane_ == 0)
      ptx::mbarrierArrive(barrier);
  }
  /// Waits for both parts of a tile.
  __device__ __forceinline__ void awaitParts(int step) const {
    ptx::mbarrierWait(ring_.full(step, kOther), Ring<Config>::parity(step));
    ptx::mbarrierWait(ring_.full(step, kOwn), Ring<Config>::parity(step));
  }

  /// The descriptor of a matrix in shared memory, known to be the same in the whole warp. For `leading`, see
  /// wgmmaDescriptor.
  static __device__ __forceinline__ unsigned long long descriptor(unsigned matrix, unsigned leading) {
    return ptx::wgmmaDescriptor(__shfl_sync(~0u, matrix, 0), leading);
  }

  /// Of a tile with these facts.
  __device__ __forceinline__ Seen seenOf(TileFacts::Head head, const TokenBounds &bounds) const {
    const bool isWhole = head.viewed.isWhole(rows_.queryLo(), rows_.queryEnd());
    return {rows_.visibility(isWhole, bounds) != Rows::kWhole, head.kind == TileFacts::Head::kRising};
  }

  const abi::AttendArgs &args_;
  const Ring<Config> &ring_;
  const int odd_; ///< the last bit of the unit's number
  const int group_, warp_, lane_;
  Rows rows_;

private:
  /// A shuffle, so that the compiler knows that the value is the same in the whole warp.
  static __device__ __forceinline__ int groupOfWarp() {
    return __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128 - kCopyingWarps<Config> / 4, 0);
  }
};

} // namespace deft::sm90_latent
