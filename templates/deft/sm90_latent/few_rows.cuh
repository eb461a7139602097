#pragma once

#include "deft/sm90_latent/barriers.cuh"
#include "deft/sm90_latent/computing_warp.cuh"
#include "deft/sm90_latent/few_byte_products.cuh"
#include "deft/sm90_latent/few_products.cuh"
#include "deft/sm90_latent/few_results.cuh"
#include "deft/sm90_latent/few_scales.cuh"
#include "deft/sm90_latent/row_weights.cuh"

/// The computing warpgroups for units of at most 16 rows. A warpgroup takes every other tile alone, with all
/// columns of V. A warp has 16 tokens of a tile in the first product, and 16 columns of each block of V in
/// the second (few_products.cuh, few_byte_products.cuh). Its lanes have scores as in other kernels: all rows,
/// and the warp's 16 tokens. The warps leave the weights in shared memory for the second product. All warps
/// of a warpgroup have the same references.
namespace deft::sm90_latent {

template <class Config, bool = kKeepsBytes<Config>> struct FewProductsOf {
  using Type = FewProducts<Config>;
};
template <class Config> struct FewProductsOf<Config, true> {
  using Type = FewByteProducts<Config>;
};

template <class Config, class Variant> class FewRows : public ComputingWarp<Config, Variant> {
  using Computing = ComputingWarp<Config, Variant>;
  using Computing::args_, Computing::ring_, Computing::group_, Computing::warp_, Computing::lane_;
  using Computing::arrive, Computing::awaitParts, Computing::head, Computing::rows_, Computing::seenOf;
  using typename Computing::L;
  using typename Computing::Params;
  using typename Computing::Rows;
  using typename Computing::Seen;
  using Few = FewLayout<Config>;
  using Value = Latent<Config>;
  using Weights = RowWeights<Config, Variant, Value>;
  using Results = FewResults<Config, Variant>;
  using Out = typename Results::Out;
  using Scales = FewScales<Config>;
  using Products = typename FewProductsOf<Config>::Type;
  static constexpr int kTokens = Few::kTokens;
  static constexpr int kScales = kFewScales<Config>;

public:
  __device__ __forceinline__ FewRows(const abi::AttendArgs &args, const Params &params,
                                     const Ring<Config> &ring, int odd)
      : Computing(args, params, ring, odd), products_(ring, group_, warp_, lane_) {}

  /// Attends to the unit's tiles from step `begin` on. Returns the step after the last.
  __device__ __forceinline__ int attend(int begin) {
    if constexpr (!kKeepsBytes<Config>) {
      ptx::fenceAsyncProxy(); // cp.async has written the queries
    } else {
      FewQueries<Config>::prepare(ring_, group_ * 128 + warp_ * 32 + lane_);
      meetBoth(); // sums of the unit before have been read as well
    }
    const int end = head().endStep;
    int step = begin + (begin % kComputingGroups == group_ ? 0 : 1);
    if (step >= end)
      arrive(ring_.queriesEmpty());
    for (; step < end; step += kComputingGroups)
      attendTile(step, step + kComputingGroups >= end);
    Results(args_, ring_, head(), rows_, group_, warp_, lane_).write(out_, weights_, scales_.unit());
    return end;
  }

private:
  __device__ __forceinline__ void attendTile(int step, bool isLast) {
    awaitParts(step);
    const TileFacts &facts = ring_.slot(step).facts;
    const TileFacts::Head head = facts.head;
    if (head.viewed.anyone == sm90::kNobody) { // it has not been copied
      if (isLast)
        arrive(ring_.queriesEmpty());
      arrive(ring_.empty(step, kOther));
      arrive(ring_.empty(step, kOwn));
      return;
    }
    if (!kKeepsBytes<Config> && head.isGathered)
      ptx::fenceAsyncProxy(); // cp.async has written it
    Seen seen;
    Fragment<2> s;
    products_.scores(
        step, s, [&] { seen = seenOf(head, facts.bounds); },
        [&] {
          if (isLast)
            arrive(ring_.queriesEmpty());
        });
    const TokenRecords tokens = ownTokens(step);
    float common[2] = {};
    score(tokens, seen, s, common);
    makeWeights(step, tokens, s, common);
    products_.addValues(step, out_, [&](Part part) { arrive(ring_.empty(step, part)); });
  }

  /// The records of the warp's tokens.
  __device__ __forceinline__ TokenRecords ownTokens(int step) const {
    TokenRecords tokens = ring_.slot(step).records();
    tokens.visible += warp_ * kTokens;
    tokens.position += warp_ * kTokens;
    tokens.depth += warp_ * kTokens;
    return tokens;
  }

  /// Turns products into final scores, except that `common` of the row must still be added.
  __device__ __forceinline__ void score(const TokenRecords &tokens, const Seen &seen, Fragment<2> &s,
                                        float (&common)[2]) const {
    const bool isScored = Rows::kRises && seen.isRising;
    if constexpr (Rows::kRises) {
      if (isScored)
        rows_.scoreRising(tokens, s, common);
    }
    if (!isScored)
      rows_.template score<1>(tokens, 0, s);
    if (seen.isCut)
      rows_.hide(tokens, 0, s);
  }

  /// Makes the tile's weights with the present references and unit of scales. Only if some warp has a score
  /// or a scale far above its own, all warps raise theirs and make the weights again.
  __device__ __forceinline__ void makeWeights(int step, const TokenRecords &tokens, const Fragment<2> &s,
                                              const float (&common)[2]) {
    float top[2], sum[2], largest = 0.f;
    if constexpr (Variant::kSigmoid && kScales == 0) {
      weigh(step, tokens, s, common, sum);
    } else {
      bool grows = false;
      if constexpr (!Variant::kSigmoid) {
        Weights::findTop(s, common, top);
        grows = weights_.hasToGrow(top);
      }
      if constexpr (kScales > 0) {
        largest = largestScale(step, s);
        grows |= scales_.hasToGrow(largest);
      }
      int *const growth =
          ring_.template fewAt<int>(Few::kGrowthOffset) + group_ * 2 + step / kComputingGroups % 2;
      if (grows) {
        if (lane_ == 0)
          *growth = step;
      }
      weigh(step, tokens, s, common, sum);
      if (*growth == step) {
        grow(top, largest);
        weigh(step, tokens, s, common, sum);
      }
      if constexpr (!Variant::kSigmoid)
        weights_.add(sum);
    }
  }

  /// Makes the weights with the present references, adds them up in `sum`, and leaves them.
  __device__ __forceinline__ void weigh(int step, const TokenRecords &tokens, Fragment<2> s,
                                        const float (&common)[2], float (&sum)[2]) const {
    if constexpr (Variant::kSigmoid) {
      s.forEach([](float &x, int, int) { x = sigmoidWeight(x); });
    } else {
      sum[0] = sum[1] = 0.f;
      weights_.weigh(s, common, sum);
    }
    leave(step, tokens, s);
  }

  /// The largest scale of the lane's tokens that a row sees.
  __device__ __forceinline__ float largestScale(int step, const Fragment<2> &s) const {
    float largest = 0.f;
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const auto token = Scales::tokenOf(ring_, step, warp_ * kTokens + n * 8 + fragmentColumn(lane_) + j);
        if (s.tile[n][j] > -kInfinity || s.tile[n][2 + j] > -kInfinity)
#pragma unroll
          for (int set = 0; set < kScales; ++set)
            largest = fmaxf(largest, fabsf(token.of[set]));
      }
    return largest;
  }

  /// Raises references and the unit of scales to the maxima over all warps, and scales the sums so far.
  __device__ __forceinline__ void grow(float (&top)[2], float largest) {
    float *const maxima =
        ring_.template fewAt<float>(Few::kMaximumOffset) + group_ * Few::kWarps * Few::kRows;
    float *const scales = ring_.template fewAt<float>(Few::kLargestScaleOffset) + group_ * Few::kWarps;
    if constexpr (!Variant::kSigmoid) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        top[r] = largestOfRow(top[r]);
        if (isFirstOfRow(lane_))
          maxima[warp_ * Few::kRows + fragmentRow(lane_, r)] = top[r];
      }
    }
    if constexpr (kScales > 0) {
      largest = largestOfWarp(largest);
      if (lane_ == 0)
        scales[warp_] = largest;
    }
    meetGroup(group_);
    float factor[2] = {1.f, 1.f};
    if constexpr (!Variant::kSigmoid) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int warp = 0; warp < Few::kWarps; ++warp)
          top[r] = fmaxf(top[r], maxima[warp * Few::kRows + fragmentRow(lane_, r)]);
      }
      weights_.grow(top, factor);
    }
    if constexpr (kScales > 0) {
#pragma unroll
      for (int warp = 0; warp < Few::kWarps; ++warp)
        largest = fmaxf(largest, scales[warp]);
      const float ofScales = scales_.grow(largest);
      factor[0] *= ofScales;
      factor[1] *= ofScales;
    }
    float ofColumn[2][2]; // the factors of the four rows whose sums the lane holds
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int j = 0; j < 2; ++j)
        ofColumn[n][j] = __shfl_sync(~0u, factor[n], firstLaneOfRow(fragmentColumn(lane_) + j));
#pragma unroll
    for (int i = 0; i < L::kValueBlocks; ++i)
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c)
          out_[i].tile[n][c] *= ofColumn[n][c % 2];
  }

  static __device__ __forceinline__ float largestOfWarp(float x) {
#pragma unroll
    for (int lanes = 1; lanes < 32; lanes *= 2)
      x = fmaxf(x, __shfl_xor_sync(~0u, x, lanes));
    return x;
  }

  /// Leaves a warp's weights in shared memory, and waits until all warps of the warpgroup have left theirs.
  __device__ __forceinline__ void leave(int step, const TokenRecords &tokens, Fragment<2> weights) const {
    rows_.multiplyByFactors(tokens, 0, weights);
    if constexpr (kScales == 0) {
      store(Few::weightsAt(group_, step, 0), weights);
    } else {
      typename Scales::Token scales[2][2];
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int j = 0; j < 2; ++j)
          scales[n][j] = Scales::tokenOf(ring_, step, warp_ * kTokens + n * 8 + fragmentColumn(lane_) + j);
#pragma unroll
      for (int set = 0; set < kScales; ++set) {
        Fragment<2> scaled;
#pragma unroll
        for (int n = 0; n < 2; ++n)
#pragma unroll
          for (int c = 0; c < 4; ++c)
            scaled.tile[n][c] = scales_.scaled(weights.tile[n][c], scales[n][c % 2].of[set]);
        store(Few::weightsAt(group_, step, set), scaled);
      }
    }
    if constexpr (!kKeepsBytes<Config>)
      ptx::fenceAsyncProxy(); // wgmma reads them
    meetGroup(group_);
  }
  __device__ __forceinline__ void store(int to, const Fragment<2> &weights) const {
    char *const block = ring_.template fewAt<char>(to);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int r = 0; r < 2; ++r)
        *reinterpret_cast<unsigned *>(block + L::offset(fragmentRow(lane_, r), warp_ * 2 + n) +
                                      lane_ % 4 * 4) =
            ptx::pack2<Value>(weights.tile[n][2 * r], weights.tile[n][2 * r + 1]);
  }

  Products products_;
  Weights weights_;
  Scales scales_;
  Out out_[L::kValueBlocks] = {}; ///< the blocks that the other warpgroup will write come first
};

} // namespace deft::sm90_latent
