#pragma once

#include "deft/ptx/ldmatrix.cuh"
#include "deft/ptx/wgmma_bytes.cuh"
#include "deft/sm90/attend.cuh"

/// Products of e4m3 (LANGUAGE.md, rule A12), by light blocks whose stages hold bytes. Kernels of variants
/// that ask for them include this behind attend.cuh; others do not know of it.
///
/// wgmma takes K as it was copied. Of 8 bits it takes no matrix whose depth is not along its rows, so the
/// computing warps transpose V, 16 tokens each, while q.k runs. Pairs of bytes are transposed by ldmatrix,
/// and then taken apart; that leaves four tokens of a lane in the order in which the lane has their
/// weights (fragment.cuh), so weights go to p.v without a shuffle.
namespace deft::sm90 {

template <class Config> constexpr bool kMultipliesBytes = requires { requires Config::kByteProducts; };

/// All rows of a tile go together: mma.sync of 16 tokens would need a transposition of its own.
template <class Config>
  requires kMultipliesBytes<Config>
constexpr bool kDeals<Config> = false;

/// The power of two that a row of q is divided by, and its inverse. Twin: ByteRow of the CPU.
struct ByteRowUnit {
  float scale, inverse;

  /// The largest element may be 448 = 1.75 * 2^8 times the scale, which is 2^-126 at least.
  __device__ __forceinline__ explicit ByteRowUnit(float largest) {
    const int exponent = max(9, (__float_as_int(largest) + 0x1fffff) >> 23);
    scale = __int_as_float((exponent - 8) << 23);
    inverse = __int_as_float((262 - exponent) << 23);
  }
};

/// In registers, as the a operand of steps of 32.
template <class Config>
  requires kMultipliesBytes<Config>
class WarpQueries<Config, false> {
  using L = Layout<Config>;
  using Query = typename Config::Query;
  static_assert(L::kHoldsBytes && L::kAreAlike && Config::kKeyDim % 32 == 0);

public:
  static constexpr int kSteps = Config::kKeyDim / 32;

  __device__ __forceinline__ WarpQueries(unsigned piece, int firstRow) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      uint2 four[kSteps][2];
      float largest = 0.f;
#pragma unroll
      for (int k = 0; k < kSteps; ++k)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int column = 4 * k + 2 * half + lane % 4 / 2; // of 16 bytes
          four[k][half] =
              ptx::loadShared8(piece + L::offset(firstRow + fragmentRow(lane, r), column) + lane % 2 * 8);
          largest = fmaxf(
              largest, fmaxf(largestOfPair<Query>(four[k][half].x), largestOfPair<Query>(four[k][half].y)));
        }
      const ByteRowUnit unit(largestOfRow(largest));
      scale_[r] = unit.scale;
#pragma unroll
      for (int k = 0; k < kSteps; ++k)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float2 a = ptx::unpack2<Query>(four[k][half].x), b = ptx::unpack2<Query>(four[k][half].y);
          query_[k][r + 2 * half] =
              ptx::packE4m3(a.x * unit.inverse, a.y * unit.inverse, b.x * unit.inverse, b.y * unit.inverse);
        }
    }
  }

  /// Starts s = q . k for the 64 keys of a tile.
  __device__ __forceinline__ void startKeys(unsigned long long keys, Fragment<8> &s) const {
#pragma unroll
    for (int k = 0; k < kSteps; ++k)
      ptx::WgmmaBytes<64>::step(s.tile, query_[k], keys + k * 32 / 16, k > 0);
  }

  __device__ __forceinline__ void restore(Fragment<8> &products) const { products.scaleRows(scale_); }

  __device__ __forceinline__ void hold(unsigned shared) const {
#pragma unroll
    for (int k = 0; k < kSteps; ++k)
      ptx::useNever(query_[k], shared);
  }

private:
  unsigned query_[kSteps][4];
  float scale_[2];
};

/// The reference of weights is the row's largest score so far, whose weight is 2^8: each sum of a tile's
/// values is added to those of the tiles before it, so these are multiplied for free.
template <class Config, class Variant>
  requires kMultipliesBytes<Config>
struct WarpSums<Config, Variant> {
  using Rows = WarpRows<Config, Variant>;
  static constexpr int kColumnTiles = Config::kValueDim / 8;
  static constexpr float kBits = 8.f; ///< of the largest weight

  Fragment<kColumnTiles> out{};
  float maximum[2] = {-kInfinity, -kInfinity};
  float sum[2] = {0.f, 0.f}; ///< of this thread's columns only, until the end

  /// What small scores save elsewhere is the maximum.
  template <class... Any> __device__ __forceinline__ bool weighSmall(const Any &...) { return false; }

  __device__ __forceinline__ bool weigh(Fragment<8> &s, const float (&common)[2], float (&factor)[2]) {
    float top[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      top[r] = s.largest(r);
      if constexpr (Rows::kRises)
        top[r] += common[r];
    }
    const bool grows = __any_sync(~0u, top[0] > maximum[0] || top[1] > maximum[1]);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      factor[r] = 1.f;
      if (grows) {
        const float reference = fmaxf(maximum[r], largestOfRow(top[r]));
        factor[r] = ptx::exp2Fast(fmaf(maximum[r], Rows::kUnit, -shiftOf(reference)));
        sum[r] *= factor[r];
        maximum[r] = reference;
      }
      float shift = shiftOf(maximum[r]) - kBits;
      if constexpr (Rows::kRises)
        shift = fmaf(common[r], -Rows::kUnit, shift);
      s.forEachOfRow(r, [&](float &x) {
        x = ptx::exp2Fast(fmaf(x, Rows::kUnit, -shift));
        sum[r] += x;
      });
    }
    return grows;
  }

  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int r = 0; r < 2; ++r)
      sum[r] = sumOfRow(sum[r]);
  }
  __device__ __forceinline__ float normalizer(int r) const {
    return sum[r] > 0.f ? ptx::reciprocalFast(sum[r]) : 0.f;
  }
  __device__ __forceinline__ float lse(int r) const {
    return (shiftOf(maximum[r]) - kBits + ptx::log2Fast(sum[r])) * kLn2;
  }

private:
  /// As that of 16 bits.
  static __device__ __forceinline__ float shiftOf(float reference) {
    return reference == -kInfinity ? 0.f : reference * Rows::kUnit;
  }
};

/// How the computing warpgroup attends. Two tiles of transposed values lie side by side in rows of 128 bytes,
/// and tiles take them in turn: a warp that is at the barrier of a tile has done with the tile before, so one
/// barrier is enough.
template <class Config, class Variant>
  requires kMultipliesBytes<Config>
class ByteProducts<Config, Variant> {
  using By = Consumer<Config, Variant>;
  using L = Layout<Config>;
  using Rows = typename By::Rows;
  using Sums = typename By::Sums;
  static constexpr int kDim = Config::kValueDim;
  static constexpr int kSteps = Config::kTileKv / 32; ///< of p . v

public:
  __device__ __forceinline__ explicit ByteProducts(const By &by) : by_(by) {}

  __device__ __forceinline__ void attend(const Rows &rows, const typename By::Queries &queries,
                                         Sums &sums) const {
    const int queryLo = rows.clamped(0) / Config::kRatio;
    const int queryEnd = rows.clamped(63) / Config::kRatio + 1;
    typename By::Scores s;
    float common[2] = {}, factor[2];
    unsigned weights[kSteps][4];
    int turn = 0;
    awaitAll(); // the unit before may still be putting its results in order where values go
    for (int step = by_.firstStep_; step < by_.endStep_; ++step) {
      const TileFacts::Head head = by_.acquire(step);
      if (!head.viewed.isSeen(queryLo, queryEnd)) {
        by_.release(step, 1);
        continue;
      }
      if (head.isGathered)
        ptx::fenceAsyncProxy();
      by_.startKeys(queries, descriptor(by_.ring_.staged(step), 16), s);
      transposeValues(step, turn);
      const bool cut = by_.isCut(rows, head, step);
      ptx::wgmmaWait<0>();
      ptx::wgmmaPin(s.tile);
      queries.restore(s);
      by_.score(rows, head, step, cut, s, common);
      by_.weigh(rows, head.viewed.anyone, step, cut, step == by_.firstStep_, sums, s, common, factor);
#pragma unroll
      for (int k = 0; k < kSteps; ++k)
        pack(s.template part<4>(4 * k), weights[k]);
      ptx::fenceAsyncProxy(); // the transposed values, to wgmma
      awaitAll();
      by_.release(step, 1);
      addValues<0>(weights, descriptor(transposed() + turn * 64, 16), factor, sums.out);
      queries.hold(by_.ring_.base);
      turn ^= 1;
    }
    awaitAll(); // results are put in order where values are
  }

private:
  static __device__ __forceinline__ void awaitAll() { ptx::namedBarrierSync(/*barrier=*/1, 128); }

  /// Where a tile's transposed values begin: row d of 128 bytes has column d of 64 tokens, and of 64 others.
  __device__ __forceinline__ unsigned transposed() const { return by_.ring_.values(0); }

  /// Of the warp's 16 tokens. In each row, four bytes are two neighbouring tokens and those 8 further on.
  __device__ __forceinline__ void transposeValues(int step, int turn) const {
    const int lane = by_.lane_, token = by_.warp_ * 16 + lane % 16;
    const unsigned from = by_.ring_.staged(step) + L::kStagedValueOffset + token * 128;
    char *const to = by_.ring_.shared + (transposed() - by_.ring_.base) + lane % 4 * 4;
    // Lanes of the upper half write odd columns first: the other way two would meet in a bank.
    const bool isUpper = lane / 16 != 0;
    const int first = lane / 4 * 2 + isUpper, second = first ^ 1;
    const int place = turn * 4 + by_.warp_; // of 16 bytes in a row
#pragma unroll
    for (int column = 0; column < kDim / 16; column += 2) {
      unsigned pairs[4];
      ptx::ldmatrix4Transposed(pairs, from + ((column + lane / 16) ^ token % 8) * 16);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        char *const rows = to + (column + i) * 16 * 128;
        *reinterpret_cast<unsigned *>(rows + first * 128 + (place ^ first % 8) * 16) =
            ptx::bytesOfPairs(pairs[2 * i], pairs[2 * i + 1], isUpper);
        *reinterpret_cast<unsigned *>(rows + second * 128 + (place ^ second % 8) * 16) =
            ptx::bytesOfPairs(pairs[2 * i], pairs[2 * i + 1], !isUpper);
      }
    }
  }

  /// Weights of 32 tokens, as the a operand that matches what transposeValues leaves.
  static __device__ __forceinline__ void pack(const Fragment<4> &s, unsigned (&a)[4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int n = i / 2 * 2, c = i % 2 * 2;
      a[i] = ptx::packE4m3(s.tile[n][c], s.tile[n][c + 1], s.tile[n + 1][c], s.tile[n + 1][c + 1]);
    }
  }

  /// out = out * factor + p . v for the columns from kFirst on. The matrix units make the sums of a tile, and
  /// float32 all others. Some columns after the others: more products under way would leave too few
  /// registers.
  template <int kFirst>
  __device__ __forceinline__ void addValues(const unsigned (&weights)[kSteps][4], unsigned long long values,
                                            const float (&factor)[2],
                                            Fragment<Sums::kColumnTiles> &out) const {
    if constexpr (kFirst < kDim) {
      constexpr int kWidth = kDim - kFirst < 64 ? kDim - kFirst : 64;
      Fragment<kWidth / 8> products;
      ptx::wgmmaFence();
#pragma unroll
      for (int k = 0; k < kSteps; ++k)
        ptx::WgmmaBytes<kWidth>::step(products.tile, weights[k], values + kFirst * 128 / 16 + k * 32 / 16,
                                      k > 0);
      ptx::wgmmaCommit();
      ptx::wgmmaWait<0>();
      ptx::wgmmaPin(products.tile);
      Fragment<kWidth / 8> &sums = out.template part<kWidth / 8>(kFirst / 8);
#pragma unroll
      for (int n = 0; n < kWidth / 8; ++n)
#pragma unroll
        for (int c = 0; c < 4; ++c)
          sums.tile[n][c] = fmaf(sums.tile[n][c], factor[c / 2], products.tile[n][c]);
      addValues<kFirst + kWidth>(weights, values, factor, out);
    }
  }

  const By &by_;
};

} // namespace deft::sm90
