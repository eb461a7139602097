#pragma once

#include "deft/common/warp_rows.cuh"
#include "deft/sm90_latent/barriers.cuh"
#include "deft/sm90_latent/row_weights.cuh"

namespace deft::sm90_latent {

/// Writes the results of a unit of few rows. Each warpgroup has the sums of all columns over its own tiles.
/// It passes half of the columns to the other warpgroup, adds the other's sums to the rest, and writes these.
template <class Config, class Variant> class FewResults {
  using L = Layout<Config>;
  using Few = FewLayout<Config>;
  using Rows = WarpRows<Config, Variant>;
  using Weights = RowWeights<Config, Variant, Latent<Config>>;

public:
  using Out = typename Few::Out;

  __device__ __forceinline__ FewResults(const abi::AttendArgs &args, const Ring<Config> &ring,
                                        const UnitHead<Config> &head, const Rows &rows, int group, int warp,
                                        int lane)
      : args_(args), ring_(ring), head_(head), rows_(rows), group_(group), warp_(warp), lane_(lane),
        item_(head.item), isPartial_(item_.partialBegin >= 0) {}

  /// `unit`: a factor of the warpgroup's sums.
  __device__ __forceinline__ void write(Out (&out)[L::kValueBlocks], Weights &weights, float unit) const {
    const typename Weights::Total total = totalOf(weights);
    float scale[2][2];
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int j = 0; j < 2; ++j)
        scale[n][j] =
            __shfl_sync(~0u, total.scale, group_ * Few::kRows + n * 8 + fragmentColumn(lane_) + j) * unit;
    if constexpr (Few::kIsGivenInWeights)
      meetGroup(group_); // slower warps may still multiply weights
    if (group_ == 0 && warp_ == 0)
      writeLse(total.lse);
    exchange(out, scale);
    if constexpr (Few::kIsGivenInWeights)
      meetGroup(group_); // the results overwrite the other warpgroup's sums
    stage(out);
    meetGroup(group_);
    writeStaged();
    if constexpr (!Few::kIsGivenInWeights) // otherwise the next unit begins with a barrier
      meetGroup(group_);                   // its scores overwrite the results
  }

private:
  /// Lane `row` returns the row's log-sum-exp and its factor for the sums of warpgroup 0. Lane `row` + 16
  /// returns the row's factor for the sums of warpgroup 1.
  __device__ __forceinline__ typename Weights::Total totalOf(Weights &weights) const {
    const int row = lane_ % Few::kRows;
    typename Weights::Total total{1.f, 0.f};
    if constexpr (!Variant::kSigmoid) {
      weights.finish();
      float *const sums = ring_.template fewAt<float>(Few::kSumOffset);
      float *const references = ring_.template fewAt<float>(Few::kReferenceOffset);
#pragma unroll
      for (int r = 0; r < 2; ++r)
        if (isFirstOfRow(lane_)) {
          sums[(group_ * Few::kWarps + warp_) * Few::kRows + fragmentRow(lane_, r)] = weights.sum(r);
          if (warp_ == 0)
            references[group_ * Few::kRows + fragmentRow(lane_, r)] = weights.reference(r);
        }
      meetBoth();
      const int group = lane_ / Few::kRows;
      float sum = 0.f;
#pragma unroll
      for (int warp = 0; warp < Few::kWarps; ++warp)
        sum += sums[(group * Few::kWarps + warp) * Few::kRows + row];
      const float reference = references[group * Few::kRows + row];
      total = Weights::total(reference, sum, __shfl_xor_sync(~0u, reference, Few::kRows),
                             __shfl_xor_sync(~0u, sum, Few::kRows));
    }
    if constexpr (HasSink<Variant>) {
      if (!isPartial_) {
        const SunkRow whole = rows_.withSink(rows_.clamped(row), total.lse);
        total.scale *= whole.share;
        total.lse = whole.lse;
      }
    }
    return total;
  }

  __device__ __forceinline__ long long queryOf(int row) const {
    const int query = row / Config::kRatio;
    return isPartial_ ? item_.partialBegin + query : head_.callerIndex[row];
  }

  __device__ __forceinline__ void writeLse(float lse) const {
    float *const out = isPartial_ ? args_.partialLse : Config::kWithLse ? args_.lse : nullptr;
    if (out != nullptr && lane_ < Few::kRows && rows_.isReal(lane_))
      out[queryOf(lane_) * Config::kQueryHeads + rows_.headOf(lane_)] = lse;
  }

  /// Scales the sums. Passes those of half of the columns to the other warpgroup, and adds its sums to the
  /// rest. Threads of the same number have the same columns and rows in both warpgroups.
  __device__ __forceinline__ void exchange(Out (&out)[L::kValueBlocks], const float (&scale)[2][2]) const {
    const int thread = warp_ * 32 + lane_;
#pragma unroll
    for (int i = 0; i < L::kValueBlocks; ++i)
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c)
          out[i].tile[n][c] *= scale[n][c % 2];
    float4 *const given = ring_.template fewAt<float4>(Few::kGivenOffset + group_ * Few::kGivenDistance);
    const float4 *const taken =
        ring_.template fewAt<float4>(Few::kGivenOffset + (1 - group_) * Few::kGivenDistance);
#pragma unroll
    for (int i = 0; i < L::kHalfBlocks; ++i)
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float (&from)[4] = out[i].tile[n];
        given[(i * 2 + n) * 128 + thread] = make_float4(from[0], from[1], from[2], from[3]);
      }
    meetBoth();
#pragma unroll
    for (int i = 0; i < L::kHalfBlocks; ++i)
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        float (&to)[4] = out[L::kHalfBlocks + i].tile[n];
        const float4 other = taken[(i * 2 + n) * 128 + thread];
        to[0] += other.x;
        to[1] += other.y;
        to[2] += other.z;
        to[3] += other.w;
      }
  }

  /// Stores the warpgroup's half of the columns in shared memory, row by row, in the format of the results.
  __device__ __forceinline__ void stage(const Out (&out)[L::kValueBlocks]) const {
    char *const staged = stagedRows();
    FinishedRow finished[2][2];
    if constexpr (HasOutput<Variant>)
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int j = 0; j < 2; ++j)
          finished[n][j] = rows_.finished(rows_.clamped(n * 8 + fragmentColumn(lane_) + j));
#pragma unroll
    for (int i = 0; i < L::kHalfBlocks; ++i)
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int column = i * 64 + warp_ * 16 + Few::columnOf(lane_, half);
          float value[2];
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            value[j] = out[L::kHalfBlocks + i].tile[n][2 * half + j];
            if constexpr (HasOutput<Variant>)
              if (!isPartial_)
                value[j] = finished[n][j].template element<Variant>(rows_.params(), value[j],
                                                                    group_ * Few::kColumns + column);
          }
          const unsigned pair = ptx::packResult<Config>(isPartial_, value[0], value[1]);
          char *const to = staged + (n * 8 + fragmentColumn(lane_)) * Few::kResultRow + column * 2;
          *reinterpret_cast<unsigned short *>(to) = static_cast<unsigned short>(pair);
          *reinterpret_cast<unsigned short *>(to + Few::kResultRow) = static_cast<unsigned short>(pair >> 16);
        }
  }

  /// Writes those rows to memory.
  __device__ __forceinline__ void writeStaged() const {
    auto *const out = static_cast<unsigned short *>(isPartial_ ? args_.partialOut : args_.out);
    const int stride = isPartial_ ? Config::kQueryHeads * Config::kValueDim : args_.outStride;
    constexpr int kPieces = Few::kColumns / 8; // pieces of 16 bytes in a row
#pragma unroll
    for (int first = 0; first < Few::kRows * kPieces; first += 128) {
      const int piece = first + warp_ * 32 + lane_, row = piece / kPieces, column = piece % kPieces * 8;
      if (piece < Few::kRows * kPieces && rows_.isReal(row))
        *reinterpret_cast<uint4 *>(out + queryOf(row) * stride + rows_.headOf(row) * Config::kValueDim +
                                   group_ * Few::kColumns + column) =
            *reinterpret_cast<const uint4 *>(stagedRows() + row * Few::kResultRow + column * 2);
    }
  }

  __device__ __forceinline__ char *stagedRows() const {
    return ring_.template fewAt<char>(Few::kIsGivenInWeights
                                          ? Few::kGivenOffset + (1 - group_) * Few::kGivenDistance
                                          : Few::kStageOffset + group_ * Few::kStageBytes);
  }

  const abi::AttendArgs &args_;
  const Ring<Config> &ring_;
  const UnitHead<Config> &head_;
  const Rows &rows_;
  const int group_, warp_, lane_;
  const abi::Item item_;
  const bool isPartial_;
};

} // namespace deft::sm90_latent
