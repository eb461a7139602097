#pragma once

#include "deft/common/warp_rows.cuh"
#include "deft/sm90_latent/layout.cuh"

namespace deft::sm90_latent {

/// Writes this thread's two rows, in its warpgroup's columns, to the output or to a partial result.
template <class Config, class Variant> class ResultRows {
  using Rows = WarpRows<Config, Variant>;
  static constexpr int kColumns = Config::kValueDim / kComputingGroups;

public:
  using Out = Fragment<kColumns / 8>;

  /// `caller`: the caller's indices of the rows' queries. `scale`: the factors that make the rows averages.
  /// `lse`: their log-sum-exp.
  __device__ __forceinline__ ResultRows(const abi::AttendArgs &args, const abi::Item &item, const Rows &rows,
                                        const int (&caller)[2], int group, const float (&scale)[2],
                                        const float (&lse)[2])
      : lane_(threadIdx.x % 32), isPartial_(item.partialBegin >= 0), firstColumn_(group * kColumns),
        params_(rows.params()) {
    auto *const out = static_cast<unsigned short *>(isPartial_ ? args.partialOut : args.out);
    float *const lseOut = isPartial_ ? args.partialLse : Config::kWithLse ? args.lse : nullptr;
    const int stride = isPartial_ ? Config::kQueryHeads * Config::kValueDim : args.outStride;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const bool isReal = rows.isReal(rows.row(r));
      const int row = rows.clamped(rows.row(r)), head = rows.headOf(row);
      const long long query = isPartial_ ? item.partialBegin + row / Config::kRatio : caller[r];
      out_[r] = isReal ? out + query * stride + head * Config::kValueDim + firstColumn_ : nullptr;
      lse_[r] = isReal && lseOut != nullptr ? lseOut + query * Config::kQueryHeads + head : nullptr;
      scale_[r] = scale[r];
      wholeLse_[r] = lse[r];
      if constexpr (HasOutput<Variant>)
        row_[r] = {args.queryPos[item.queryBegin + row / Config::kRatio], head,
                   kvHeadForHooks<Config>(rows.kvHead()), caller[r]};
      if constexpr (HasSink<Variant>) {
        if (!isPartial_) {
          const SunkRow whole = rows.withSink(row, lse[r]);
          scale_[r] *= whole.share;
          wholeLse_[r] = whole.lse;
        }
      }
    }
  }

  /// The four lanes of a row exchange their values of four column tiles, so that each lane writes 16 bytes.
  __device__ __forceinline__ void write(const Out &out) const {
    const int own = lane_ % 4;
#pragma unroll
    for (int first = 0; first < kColumns / 8; first += 4) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        unsigned piece[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          piece[i] = pairOf(out, first + i, r);
        exchange<1>(piece[0], piece[1]);
        exchange<1>(piece[2], piece[3]);
        exchange<2>(piece[0], piece[2]);
        exchange<2>(piece[1], piece[3]);
        if (out_[r] != nullptr)
          *reinterpret_cast<uint4 *>(out_[r] + (first + own) * 8) =
              make_uint4(piece[0], piece[1], piece[2], piece[3]);
      }
    }
  }

  /// Only the first warpgroup writes.
  __device__ __forceinline__ void writeLse() const {
    if (!isFirstOfRow(lane_) || firstColumn_ > 0)
      return;
#pragma unroll
    for (int r = 0; r < 2; ++r)
      if (lse_[r] != nullptr)
        *lse_[r] = wholeLse_[r];
  }

private:
  /// In a matrix with lanes as rows, swaps the off-diagonal piece with the lane `kDistance` away.
  template <int kDistance> __device__ __forceinline__ void exchange(unsigned &low, unsigned &high) const {
    const bool isHigh = (lane_ & kDistance) != 0;
    const unsigned other = __shfl_xor_sync(~0u, isHigh ? low : high, kDistance);
    low = isHigh ? other : low;
    high = isHigh ? high : other;
  }

  /// The lane's two values of row half r and column tile n, in the memory's format.
  __device__ __forceinline__ unsigned pairOf(const Out &out, int n, int r) const {
    float first = out.tile[n][2 * r] * scale_[r], second = out.tile[n][2 * r + 1] * scale_[r];
    if constexpr (HasOutput<Variant>) {
      if (!isPartial_) {
        const int column = firstColumn_ + n * 8 + fragmentColumn(lane_);
        first = row_[r].template element<Variant>(params_, first, column);
        second = row_[r].template element<Variant>(params_, second, column + 1);
      }
    }
    return ptx::packResult<Config>(isPartial_, first, second);
  }

  const int lane_;
  const bool isPartial_;
  const int firstColumn_;
  const typename Variant::Params &params_;
  unsigned short *out_[2]; ///< where the rows' columns begin; null: the row has no query
  float *lse_[2];          ///< null: not wanted
  float scale_[2], wholeLse_[2];
  FinishedRow row_[2]; ///< if there is a hook for the output
};

} // namespace deft::sm90_latent
