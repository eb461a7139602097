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
      : lane_(threadIdx.x % 32), isPartial_(places.item.partialBegin >= 0),
        out_(static_cast<unsigned short *>(isPartial_ ? args.partialOut : args.out)),
        lse_(isPartial_         ? args.partialLse
             : Config::kWithLse ? args.lse
                                : nullptr) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = rows.clamped(rows.row(r));
      const int query = isPartial_ ? places.item.partialBegin + row / Config::kRatio : places.caller[r];
      isReal_[r] = rows.isReal(rows.row(r));
      place_[r] = static_cast<long long>(query) * Config::kQueryHeads + rows.headOf(row);
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
      if (!isReal_[r])
        continue;
      const long long element = place_[r] * Config::kValueDim + n * 8 + fragmentColumn(lane_);
      *reinterpret_cast<unsigned *>(out_ + element) = pairOf(values, 0, r);
    }
  }

  /// All columns, through half a room, as many at a time as it takes: registers hold eight bytes of a row,
  /// memory takes whole lines best.
  __device__ __forceinline__ void send(const Fragment<Sums::kColumnTiles> &out, char *own) const {
    const int holder = firstLaneOfRow(lane_); // of row lane % 16
    const long long begin0 = __shfl_sync(~0u, isReal_[0] ? place_[0] * Config::kValueDim : -1, holder),
                    begin1 = __shfl_sync(~0u, isReal_[1] ? place_[1] * Config::kValueDim : -1, holder);
    const long long begin = lane_ % 16 < 8 ? begin0 : begin1;
    __syncwarp(); // sums that were joined here have been read
    sendFrom<0>(out, own, begin);
  }

  __device__ __forceinline__ void writeLse(const Sums &sums) const {
    if (lse_ == nullptr || !isFirstOfRow(lane_))
      return;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (isReal_[r])
        lse_[place_[r]] = HasSink<Variant> ? wholeLse_[r] : sums.lse(r);
    }
  }

private:
  /// The lane's two values of row half r and column tile n, as memory has them.
  template <int kTiles>
  __device__ __forceinline__ unsigned pairOf(const Fragment<kTiles> &out, int n, int r) const {
    return ptx::packResult<Config>(isPartial_, out.tile[n][2 * r] * scale_[r],
                                   out.tile[n][2 * r + 1] * scale_[r]);
  }

  /// Column tiles kFirst, kFirst + 1, ... `begin` is where those of row lane % 16 begin, negative where
  /// nobody wants it.
  template <int kFirst>
  __device__ __forceinline__ void sendFrom(const Fragment<Sums::kColumnTiles> &out, char *own,
                                           long long begin) const {
    constexpr int kEnd = L::roomEnd(kFirst);
#pragma unroll
    for (int n = kFirst; n < kEnd; ++n) {
#pragma unroll
      for (int r = 0; r < 2; ++r)
        *reinterpret_cast<unsigned *>(own + fragmentRow(lane_, r) * L::kRowBytes + (n - kFirst) * 16 +
                                      fragmentColumn(lane_) * 2) = pairOf(out, n, r);
    }
    sendRows<kEnd - kFirst>(own, begin);
    if constexpr (kEnd < Sums::kColumnTiles)
      sendFrom<kEnd>(out, own, begin < 0 ? begin : begin + (kEnd - kFirst) * 8);
  }

  /// 16 rows of kColumns times 16 bytes from shared memory to their places, 16 bytes a lane; the room is free
  /// afterwards.
  template <int kColumns> __device__ __forceinline__ void sendRows(const char *rows, long long begin) const {
    __syncwarp();
#pragma unroll 4
    for (int i = 0; i < kColumns / 2; ++i) {
      const int row = (i * 32 + lane_) / kColumns, column = (i * 32 + lane_) % kColumns;
      const uint4 piece = *reinterpret_cast<const uint4 *>(rows + row * L::kRowBytes + column * 16);
      const long long at = __shfl_sync(~0u, begin, row);
      if (at >= 0)
        *reinterpret_cast<uint4 *>(out_ + at + column * 8) = piece;
    }
    __syncwarp();
  }

  const int lane_;
  const bool isPartial_;
  unsigned short *const out_; ///< of 16 bits, both
  float *const lse_;          ///< null: not wanted
  bool isReal_[2];
  long long place_[2]; ///< of a row in the arrays of partials or of outputs
  float scale_[2];
  float wholeLse_[2]; ///< where there are sinks: with them, unless it goes to a partial
};

} // namespace deft::sm90
