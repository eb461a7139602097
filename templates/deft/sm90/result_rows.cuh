#pragma once

#include "deft/sm90/warp_sums.cuh"

/// What becomes of a warp's 16 rows.
namespace deft::sm90 {

/// Where this thread's two rows go: the output, or a partial. Found once, before the first store: the
/// compiler must assume that a store changes what the next address is read from.
template <class Config, class Variant> class ResultRows {
  using L = Layout<Config>;
  using Rows = WarpRows<Config, Variant>;
  using Sums = WarpSums<Config, Variant>;

public:
  /// What the unit says of where they go.
  struct Places {
    int caller[2]; ///< the caller's indices of the rows' queries
    abi::Item item;
  };

  __device__ __forceinline__ ResultRows(const abi::AttendArgs &args, const Places &places, const Rows &rows,
                                        const Sums &sums)
      : lane_(threadIdx.x % 32), isPartial_(places.item.partialBegin >= 0), params_(rows.params()) {
    auto *const out = static_cast<unsigned short *>(isPartial_ ? args.partialOut : args.out);
    float *const lse = isPartial_ ? args.partialLse : Config::kWithLse ? args.lse : nullptr;
    const int stride = isPartial_ ? Config::kQueryHeads * Config::kValueDim : args.outStride;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const bool isReal = rows.isReal(rows.row(r));
      const int row = rows.clamped(rows.row(r)), head = rows.headOf(row);
      const long long query = isPartial_ ? places.item.partialBegin + row / Config::kRatio : places.caller[r];
      out_[r] = isReal ? out + query * stride + head * Config::kValueDim : nullptr;
      if constexpr (HasOutput<Variant>)
        row_[r] = {args.queryPos[places.item.queryBegin + row / Config::kRatio], head, rows.kvHead(),
                   places.caller[r]};
      lse_[r] = isReal && lse != nullptr ? lse + query * Config::kQueryHeads + head : nullptr;
      scale_[r] = sums.normalizer(r);
      if constexpr (HasSink<Variant>) {
        wholeLse_[r] = sums.lse(r);
        if (!isPartial_) {
          const SunkRow whole = rows.withSink(row, wholeLse_[r]);
          scale_[r] *= whole.share;
          wholeLse_[r] = whole.lse;
        }
      }
    }
  }

  /// Column tile n, straight from the registers.
  __device__ __forceinline__ void write(int n, const Fragment<1> &values) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (out_[r] != nullptr)
        *reinterpret_cast<unsigned *>(out_[r] + n * 8 + fragmentColumn(lane_)) = pairOf(values, 0, n, r);
    }
  }

  /// All columns, through half a buffer, as many at a time as it takes: registers hold eight bytes of a row,
  /// memory takes whole lines best.
  __device__ __forceinline__ void send(const Fragment<Sums::kColumnTiles> &out, char *own) const {
    const int holder = firstLaneOfRow(lane_); // of row lane % 16
    const unsigned long long first = __shfl_sync(~0u, reinterpret_cast<unsigned long long>(out_[0]), holder),
                             second = __shfl_sync(~0u, reinterpret_cast<unsigned long long>(out_[1]), holder);
    __syncwarp(); // sums that were joined here have been read
    sendFrom<0>(out, own, lane_ % 16 < 8 ? first : second);
  }

  __device__ __forceinline__ void writeLse(const Sums &sums) const {
    if (!isFirstOfRow(lane_))
      return;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (lse_[r] != nullptr)
        *lse_[r] = HasSink<Variant> ? wholeLse_[r] : sums.lse(r);
    }
  }

private:
  /// The lane's two values of row half r and tile i of `out`, which is column tile n, as memory has them.
  template <int kTiles>
  __device__ __forceinline__ unsigned pairOf(const Fragment<kTiles> &out, int i, int n, int r) const {
    float first = out.tile[i][2 * r] * scale_[r], second = out.tile[i][2 * r + 1] * scale_[r];
    if constexpr (HasOutput<Variant>) {
      if (!isPartial_) {
        const int column = n * 8 + fragmentColumn(lane_);
        first = row_[r].template element<Variant>(params_, first, column);
        second = row_[r].template element<Variant>(params_, second, column + 1);
      }
    }
    return ptx::packResult<Config>(isPartial_, first, second);
  }

  /// Column tiles kFirst, kFirst + 1, ... `begin` is where row lane % 16 begins, 0 where nobody wants it.
  template <int kFirst>
  __device__ __forceinline__ void sendFrom(const Fragment<Sums::kColumnTiles> &out, char *own,
                                           unsigned long long begin) const {
    constexpr int kEnd = L::bufferEnd(kFirst);
#pragma unroll
    for (int n = kFirst; n < kEnd; ++n) {
#pragma unroll
      for (int r = 0; r < 2; ++r)
        *reinterpret_cast<unsigned *>(own + fragmentRow(lane_, r) * L::kRowBytes + (n - kFirst) * 16 +
                                      fragmentColumn(lane_) * 2) = pairOf(out, n, n, r);
    }
    sendRows<kFirst, kEnd>(own, begin);
    if constexpr (kEnd < Sums::kColumnTiles)
      sendFrom<kEnd>(out, own, begin);
  }

  /// These column tiles of 16 rows, each 16 bytes of a row, from shared memory to their places, one a lane;
  /// the buffer is free afterwards.
  template <int kFirst, int kEnd>
  __device__ __forceinline__ void sendRows(const char *rows, unsigned long long begin) const {
    constexpr int kColumns = kEnd - kFirst;
    __syncwarp();
#pragma unroll 4
    for (int i = 0; i < kColumns / 2; ++i) {
      const int row = (i * 32 + lane_) / kColumns, column = (i * 32 + lane_) % kColumns;
      const uint4 piece = *reinterpret_cast<const uint4 *>(rows + row * L::kRowBytes + column * 16);
      const unsigned long long at = __shfl_sync(~0u, begin, row);
      if (at != 0)
        *reinterpret_cast<uint4 *>(at + kFirst * 16 + column * 16) = piece;
    }
    __syncwarp();
  }

  const int lane_;
  const bool isPartial_;
  unsigned short
      *out_[2];   ///< where the rows begin, of outputs or partials, both of 16 bits; null: of no query
  float *lse_[2]; ///< null: not wanted
  float scale_[2];
  const typename Variant::Params &params_;
  FinishedRow row_[2]; ///< where there is a hook of the output
  float wholeLse_[2];  ///< where there are sinks: with them, unless it goes to a partial
};

} // namespace deft::sm90
