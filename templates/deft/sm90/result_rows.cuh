#pragma once

#include "deft/sm90/warp_sums.cuh"

/// How a warp's 16 rows become results.
namespace deft::sm90 {

/// Writes this thread's two rows to the output or to a partial result. It computes the addresses once, before
/// the first store: the compiler must assume that a store changes the operands of the next address.
template <class Config, class Variant> class ResultRows {
  using L = Layout<Config>;
  using Rows = WarpRows<Config, Variant>;
  using Sums = WarpSums<Config, Variant>;

public:
  /// The unit's data about the rows' destinations.
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

  /// Writes column tile n directly from registers.
  __device__ __forceinline__ void write(int n, const Fragment<1> &values) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (out_[r] != nullptr)
        *reinterpret_cast<unsigned *>(out_[r] + n * 8 + fragmentColumn(lane_)) = pairOf(values, 0, n, r);
    }
  }

  /// Writes all columns through half a buffer, as many at a time as fit. Registers hold eight bytes of a row,
  /// while memory prefers whole lines.
  __device__ __forceinline__ void send(const Fragment<Sums::kColumnTiles> &out, char *own) const {
    const int holder = firstLaneOfRow(lane_); // the lane that holds row lane % 16
    const unsigned long long first = __shfl_sync(~0u, reinterpret_cast<unsigned long long>(out_[0]), holder),
                             second = __shfl_sync(~0u, reinterpret_cast<unsigned long long>(out_[1]), holder);
    __syncwarp(); // joined sums in this buffer have been read
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
  /// The lane's two values of row half r and tile i of `out` (column tile n), in the memory's format.
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

  /// Column tiles kFirst, kFirst + 1, ... `begin`: the address of row lane % 16, or 0 if it is not written.
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

  /// Copies these column tiles of 16 rows from shared memory to their places; a lane copies 16 bytes of a row
  /// at a time. Afterwards the buffer is free.
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
      *out_[2];   ///< where the rows begin in outputs or partials, both 16-bit; null: the row has no query
  float *lse_[2]; ///< null: not wanted
  float scale_[2];
  const typename Variant::Params &params_;
  FinishedRow row_[2]; ///< if there is a hook for the output
  float wholeLse_[2];  ///< if there are sinks: includes them, unless the row is partial
};

} // namespace deft::sm90
