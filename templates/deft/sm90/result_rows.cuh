#pragma once

#include "deft/ptx/bulk_copy.cuh"
#include "deft/ptx/cp_async.cuh"
#include "deft/ptx/mbarrier.cuh"
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

  /// All columns by the copy engine, through the warp's room: registers hold eight bytes of a row, and a
  /// store of them would take a cycle for each. Only half `half` of the room is used unless `ownsRoom`.
  __device__ __forceinline__ void send(const float (&out)[Sums::kColumnTiles][4], char *room, int half,
                                       bool ownsRoom) const {
    const int sender = lane_ % 8 * 4; // has the row that this lane sends
    const long long place0 = __shfl_sync(~0u, place_[0], sender),
                    place1 = __shfl_sync(~0u, place_[1], sender);
    const int real0 = __shfl_sync(~0u, isReal_[0], sender), real1 = __shfl_sync(~0u, isReal_[1], sender);
    const long long first = (lane_ < 8 ? place0 : place1) * Config::kHeadDim;
    const bool sends = lane_ < 16 && (lane_ < 8 ? real0 : real1) != 0;
    __syncwarp(); // sums that were joined here have been read
    char *own = room + (ownsRoom ? 0 : half * L::kHalfRoomBytes);
    if (isPartial_) {
      constexpr int kTiles = Sums::kColumnTiles / 2;
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        if (part == 1 && ownsRoom)
          own += L::kHalfRoomBytes;
        if (part == 1 && !ownsRoom) {
          ptx::bulkAwaitReads();
          __syncwarp();
        }
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
#pragma unroll
          for (int r = 0; r < 2; ++r)
            *reinterpret_cast<float2 *>(own + (lane_ / 4 + 8 * r) * L::kRowBytes + n * 32 + lane_ % 4 * 8) =
                make_float2(out[part * kTiles + n][2 * r] * scale_[r],
                            out[part * kTiles + n][2 * r + 1] * scale_[r]);
        }
        sendRows(args_.partialOut + first + part * Config::kHeadDim / 2, own, sends);
      }
    } else {
#pragma unroll
      for (int n = 0; n < Sums::kColumnTiles; ++n) {
#pragma unroll
        for (int r = 0; r < 2; ++r)
          *reinterpret_cast<unsigned *>(own + (lane_ / 4 + 8 * r) * L::kRowBytes + n * 16 + lane_ % 4 * 4) =
              ptx::pack2<Output>(out[n][2 * r] * scale_[r], out[n][2 * r + 1] * scale_[r]);
      }
      sendRows(static_cast<Output *>(args_.out) + first, own, sends);
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
  /// Lane l sends row l.
  __device__ __forceinline__ void sendRows(void *to, const char *rows, bool sends) const {
    ptx::fenceAsyncProxy();
    __syncwarp();
    if (sends)
      ptx::bulkStore(to, ptx::sharedAddress(rows + lane_ * L::kRowBytes), 2 * Config::kHeadDim);
    ptx::bulkCommit();
  }

  const abi::AttendArgs &args_;
  const int lane_;
  const bool isPartial_;
  bool isReal_[2];
  long long place_[2]; ///< of a row in the arrays of partials or of outputs
  float scale_[2];
};

} // namespace deft::sm90
