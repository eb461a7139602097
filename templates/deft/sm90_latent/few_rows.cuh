#pragma once

#include "deft/ptx/wgmma.cuh"
#include "deft/sm90_latent/barriers.cuh"
#include "deft/sm90_latent/computing_warp.cuh"
#include "deft/sm90_latent/few_results.cuh"
#include "deft/sm90_latent/few_scales.cuh"
#include "deft/sm90_latent/row_weights.cuh"

/// The computing warpgroups for units of at most 16 rows. wgmma has 64 rows, so both products are transposed.
/// The rows of wgmma are tokens in the first product and columns of V in the second. Its 16 columns are the
/// unit's rows.
///
///   scores  tokens x rows = K q^T      a warp has 16 tokens of a tile
///   sums    columns x rows = V^T p^T   a warp has 16 columns of each block of V
///
/// A warpgroup takes every other tile alone, with all columns of V. Each warp transposes its scores in shared
/// memory. Then its lanes have them as in other kernels: all rows, and the warp's 16 tokens. The warps leave
/// the weights in shared memory for the second product. All warps of a warpgroup have the same references.
namespace deft::sm90_latent {

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
  using Key = typename Config::Key;
  static constexpr int kTokens = 16;                        ///< a warp's tokens in a tile
  static constexpr int kGroups = Config::kTileKv / kTokens; ///< groups of so many tokens in a tile
  /// Partial sums of a score. A short product waits for the one before it in its chain.
  static constexpr int kChains = 4;
  /// Whether tiles have the values of bytes as they are. Then each scale has a chain, and the columns behind
  /// V's, which have q's type, have one more.
  static constexpr bool kIsExact = kIsOfBytes<Config>;
  static constexpr int kScales = kFewScales<Config>;
  static constexpr int kAllChains = kChains + (kIsExact ? 1 : 0);
  static_assert(kScales == 0 || (kScales == kChains && kScaleColumnsOf<Config> % 64 == 0));

public:
  __device__ __forceinline__ FewRows(const abi::AttendArgs &args, const Params &params,
                                     const Ring<Config> &ring, int odd)
      : Computing(args, params, ring, odd) {}

  /// Attends to the unit's tiles from step `begin` on. Returns the step after the last.
  __device__ __forceinline__ int attend(int begin) {
    ptx::fenceAsyncProxy(); // cp.async has written the queries
    if constexpr (kIsExact) {
      FewQueries<Config>::convert(ring_, group_ * 128 + warp_ * 32 + lane_);
      meetBoth(); // sums of the unit before have been read as well
    }
    const int end = head().endStep;
    int step = begin + (begin % kSlots == group_ ? 0 : 1);
    if (step >= end)
      arrive(ring_.queriesEmpty());
    for (; step < end; step += kSlots)
      attendTile(step, step + kSlots >= end);
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
    if (head.isGathered)
      ptx::fenceAsyncProxy(); // cp.async has written it
    Fragment<2> chains[kAllChains];
    startKeys(step, chains);
    const Seen seen = seenOf(head, facts.bounds); // overlaps the products
    ptx::wgmmaWait<0>();
#pragma unroll
    for (int i = 0; i < kAllChains; ++i)
      ptx::wgmmaPin(chains[i].tile);
    if (isLast)
      arrive(ring_.queriesEmpty());
    Fragment<2> s;
    turn(step, chains, s);
    const TokenRecords tokens = ownTokens(step);
    float common[2] = {};
    score(tokens, seen, s, common);
    makeWeights(step, tokens, s, common);
    startValues(step);
    // The first products have read part kOther, so its next copies may start.
    ptx::wgmmaWait<1>();
    arrive(ring_.empty(step, kOther));
    ptx::wgmmaWait<0>();
#pragma unroll
    for (int i = 0; i < L::kValueBlocks; ++i)
      ptx::wgmmaPin(out_[i].tile);
    arrive(ring_.empty(step, kOwn));
  }

  /// The descriptor of a matrix in shared memory, known to be the same in the whole warp. Only blocks of 64
  /// columns are read, so the distance between them does not matter.
  static __device__ __forceinline__ unsigned long long descriptor(unsigned matrix) {
    return Computing::descriptor(matrix, kBlockBytes);
  }

  /// 16 columns from 16 k on, of this type.
  template <class Factor>
  static __device__ __forceinline__ void multiply(unsigned long long keys, unsigned long long queries, int k,
                                                  bool adds, Fragment<2> &chain) {
    ptx::WgmmaOfFew<Factor>::template step<false>(chain.tile, keys + (k / 4 * kBlockBytes + k % 4 * 32) / 16,
                                                  queries + (k / 4 * L::kQueryBlockBytes + k % 4 * 32) / 16,
                                                  adds);
  }

  __device__ __forceinline__ void startKeys(int step, Fragment<2> (&chains)[kAllChains]) const {
    const unsigned long long keys = descriptor(ring_.tile(step)), queries = descriptor(ring_.queries());
    constexpr int kSteps = Config::kKeyDim / 16, kOwnSteps = kIsExact ? Config::kValueDim / 16 : kSteps;
    ptx::wgmmaFence();
#pragma unroll
    for (int i = 0; i < kOwnSteps; ++i) {
      const int k = kScales > 0 ? i % kChains * (kOwnSteps / kChains) + i / kChains : i;
      multiply<Value>(keys, queries, k, i >= kChains, chains[i % kChains]);
    }
#pragma unroll
    for (int k = kOwnSteps; k < kSteps; ++k)
      multiply<Key>(keys, queries, k, k > kOwnSteps, chains[kAllChains - 1]);
    ptx::wgmmaCommit();
  }

  /// Adds the tile's weighted values to the sums. The columns that the other warpgroup will write come first.
  __device__ __forceinline__ void startValues(int step) {
    const unsigned long long weights = descriptor(ring_.few() + weightsAt(step, 0));
    ptx::wgmmaFence();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int part = half == 0 ? 1 - group_ : group_;
      const unsigned long long values = descriptor(ring_.tile(step) + part * L::kHalfBlocks * kBlockBytes);
#pragma unroll
      for (int g = 0; g < kGroups; ++g)
#pragma unroll
        for (int i = 0; i < L::kHalfBlocks; ++i)
          ptx::WgmmaOfFew<Value>::template step<true>(
              out_[half * L::kHalfBlocks + i].tile, values + (i * kBlockBytes + g * kTokens * 128) / 16,
              weights + setOf(part * L::kHalfBlocks + i) * (Few::kWeightBytes / 16) + g * 2, true);
      ptx::wgmmaCommit();
    }
  }

  /// Adds up the chains and transposes the scores. In the chains a lane has two tokens of four rows; in `s`
  /// it has two rows of four tokens.
  __device__ __forceinline__ void turn(int step, const Fragment<2> (&chains)[kAllChains],
                                       Fragment<2> &s) const {
    float *const turned = ring_.template fewAt<float>(Few::kStageOffset + group_ * Few::kStageBytes +
                                                      warp_ * Few::kTurnedBytes);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const auto of = [&](int chain) { return chains[chain].tile[n][c]; };
        float sum;
        if constexpr (kScales > 0) {
          const auto token = Scales::tokenOf(ring_, step, warp_ * kTokens + fragmentRow(lane_, c / 2));
          sum = (of(0) * token.of[0] + of(1) * token.of[1]) + (of(2) * token.of[2] + of(3) * token.of[3]);
        } else {
          sum = (of(0) + of(1)) + (of(2) + of(3));
        }
        if constexpr (kIsExact)
          sum =
              sum * FewQueries<Config>::factorOf(ring_, n * 8 + fragmentColumn(lane_) + c % 2) + of(kChains);
        turned[(n * 8 + fragmentColumn(lane_) + c % 2) * Few::kTurnedRow + fragmentRow(lane_, c / 2)] = sum;
      }
    __syncwarp();
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float2 pair = *reinterpret_cast<const float2 *>(
            turned + fragmentRow(lane_, r) * Few::kTurnedRow + n * 8 + fragmentColumn(lane_));
        s.tile[n][2 * r] = pair.x;
        s.tile[n][2 * r + 1] = pair.y;
      }
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
      int *const growth = ring_.template fewAt<int>(Few::kGrowthOffset) + group_ * 2 + step / kSlots % 2;
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

  /// The set of weights for a block of V's columns, which is that of its scale.
  static __device__ __forceinline__ constexpr int setOf(int block) {
    return kScales > 0 ? block * 64 / (Config::kValueDim / Few::kWeightSets) : 0;
  }
  /// The place of a set of a step's weights. There are two places in turn, since slower warps may still
  /// multiply the tile before.
  __device__ __forceinline__ int weightsAt(int step, int set) const {
    return Few::kWeightOffset + group_ * Few::kGroupWeightBytes + step / kSlots % 2 * Few::kTileWeightBytes +
           set * Few::kWeightBytes;
  }

  /// Leaves a warp's weights in shared memory, and waits until all warps of the warpgroup have left theirs.
  __device__ __forceinline__ void leave(int step, const TokenRecords &tokens, Fragment<2> weights) const {
    rows_.multiplyByFactors(tokens, 0, weights);
    if constexpr (kScales == 0) {
      store(weightsAt(step, 0), weights);
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
        store(weightsAt(step, set), scaled);
      }
    }
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

  Weights weights_;
  Scales scales_;
  Out out_[L::kValueBlocks] = {}; ///< the blocks that the other warpgroup will write come first
};

} // namespace deft::sm90_latent
