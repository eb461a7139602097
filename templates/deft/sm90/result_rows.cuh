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
  using Output = typename Config::Output;

public:
  /// `caller` are the caller's indices of the rows' queries.
  __device__ __forceinline__ ResultRows(const abi::AttendArgs &args, const abi::Item &item, const Rows &rows,
                                        const int (&caller)[2], const Sums &sums)
      : args_(args), lane_(threadIdx.x % 32), isPartial_(item.partialBegin >= 0) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = rows.clamped(rows.row(r));
      const int query = isPartial_ ? item.partialBegin + row / Config::kRatio : caller[r];
      isReal_[r] = rows.isReal(rows.row(r));
      place_[r] = static_cast<long long>(query) * Config::kQueryHeads + rows.headOf(row);
      scale_[r] = sums.normalizer(r);
    }
  }

  /// Column tile n, straight from the registers.
  __device__ __forceinline__ void write(int n, const float (&values)[4]) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (!isReal_[r])
        continue;
      const long long element = place_[r] * Config::kHeadDim + n * 8 + lane_ % 4 * 2;
      const float low = values[2 * r] * scale_[r], high = values[2 * r + 1] * scale_[r];
      if (isPartial_)
        *reinterpret_cast<float2 *>(args_.partialOut + element) = make_float2(low, high);
      else
        *reinterpret_cast<unsigned *>(static_cast<Output *>(args_.out) + element) =
            ptx::pack2<Output>(low, high);
    }
  }

  /// All columns, through the warp's room: registers hold eight bytes of a row, memory takes whole lines
  /// best. Half `half` of the room is used, the first one where the other warpgroup has none (`ownsRoom`).
  __device__ __forceinline__ void send(const float (&out)[Sums::kColumnTiles][4], char *room, int half,
                                       bool ownsRoom) const {
    char *own = room + (ownsRoom ? 0 : half * L::kHalfRoomBytes);
    const int holder = lane_ % 8 * 4; // has row lane % 16
    const long long begin0 = __shfl_sync(~0u, isReal_[0] ? place_[0] * Config::kHeadDim : -1, holder),
                    begin1 = __shfl_sync(~0u, isReal_[1] ? place_[1] * Config::kHeadDim : -1, holder);
    const long long begin = lane_ % 16 < 8 ? begin0 : begin1;
    __syncwarp(); // sums that were joined here have been read
    if (isPartial_) {
      constexpr int kTiles = Sums::kColumnTiles / 2;
#pragma unroll
      for (int part = 0; part < 2; ++part) {
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
#pragma unroll
          for (int r = 0; r < 2; ++r)
            *reinterpret_cast<float2 *>(own + (lane_ / 4 + 8 * r) * L::kRowBytes + n * 32 + lane_ % 4 * 8) =
                make_float2(out[part * kTiles + n][2 * r] * scale_[r],
                            out[part * kTiles + n][2 * r + 1] * scale_[r]);
        }
        sendRows(args_.partialOut + part * Config::kHeadDim / 2, own, begin);
      }
    } else {
#pragma unroll
      for (int n = 0; n < Sums::kColumnTiles; ++n) {
#pragma unroll
        for (int r = 0; r < 2; ++r)
          *reinterpret_cast<unsigned *>(own + (lane_ / 4 + 8 * r) * L::kRowBytes + n * 16 + lane_ % 4 * 4) =
              ptx::pack2<Output>(out[n][2 * r] * scale_[r], out[n][2 * r + 1] * scale_[r]);
      }
      sendRows(static_cast<Output *>(args_.out), own, begin);
    }
  }

  __device__ __forceinline__ void writeLse(const Sums &sums) const {
    float *lse = isPartial_ ? args_.partialLse : Config::kWithLse ? args_.lse : nullptr;
    if (lse == nullptr || lane_ % 4 != 0)
      return;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (isReal_[r])
        lse[place_[r]] = sums.lse(r);
    }
  }

private:
  /// 16 rows from shared memory to their places, 16 bytes a lane; the room is free afterwards. `begin` is
  /// where row lane % 16 begins, negative where nobody wants it.
  template <class T>
  __device__ __forceinline__ void sendRows(T *to, const char *rows, long long begin) const {
    __syncwarp();
#pragma unroll 4
    for (int i = 0; i < L::kColumns / 2; ++i) {
      const int row = (i * 32 + lane_) / L::kColumns, column = (i * 32 + lane_) % L::kColumns;
      const uint4 piece = *reinterpret_cast<const uint4 *>(rows + row * L::kRowBytes + column * 16);
      const long long at = __shfl_sync(~0u, begin, row);
      if (at >= 0)
        *reinterpret_cast<uint4 *>(to + at + column * (16 / sizeof(T))) = piece;
    }
    __syncwarp();
  }

  const abi::AttendArgs &args_;
  const int lane_;
  const bool isPartial_;
  bool isReal_[2];
  long long place_[2]; ///< of a row in the arrays of partials or of outputs
  float scale_[2];
};

} // namespace deft::sm90
