#pragma once

#include "deft/ptx/wgmma_bytes.cuh"
#include "deft/sm90/attend.cuh"
#include "deft/sm90/value_transposition.cuh"

/// Products of e4m3 (LANGUAGE.md, rule A12), by light blocks whose stages hold bytes. Only kernels of
/// variants that ask for such products include this, after attend.cuh.
///
/// wgmma takes K as copied. With 8 bits, wgmma needs matrices whose depth is along the rows. So the computing
/// warps transpose V, 16 tokens each, during q.k. ldmatrix transposes pairs of bytes, which are then
/// separated. That gives a lane's four tokens the order of its weights (fragment.cuh), so p.v needs no
/// shuffle of weights.
namespace deft::sm90 {

template <class Config> constexpr bool kMultipliesBytes = requires { requires Config::kByteProducts; };

/// The layout of other caches of bytes, without the tile for converted keys.
template <class Config> struct WithoutProducts : Config {
  static constexpr bool kByteProducts = false;
};
template <class Config>
  requires(kMultipliesBytes<Config> && kHasBytes<Config>)
struct LayoutOf<Config> : LayoutOf<WithoutProducts<Config>> {
private:
  using Other = LayoutOf<WithoutProducts<Config>>;
  static_assert(Other::kHoldsBytes && Other::kAreAlike);

public:
  /// With four stages, each has its own copying warp, which finds a tile's tokens once for both halves.
  static constexpr int kTeam = Config::kStages % 4 == 0 ? 1 : Other::kTeam;
  static constexpr int kValueOffset = 0; ///< of transposed values
  static constexpr int kBufferOffset = 0;
  static constexpr int kTilesEnd = Other::kTilesEnd - Other::kKeyTileBytes;
  static constexpr int kStagedOffset = Other::kStagedOffset - Other::kKeyTileBytes;
  static constexpr int kQueryOffset = Other::kQueryOffset - Other::kKeyTileBytes;
  static constexpr int kSlotOffset = Other::kSlotOffset - Other::kKeyTileBytes;
  static constexpr int kBarrierOffset = Other::kBarrierOffset - Other::kKeyTileBytes;
  static constexpr int kBytes = Other::kBytes - Other::kKeyTileBytes;
  static_assert(Config::kValueDim * 128 <= kTilesEnd && kStagedOffset % Other::kAlignment == 0);
};

/// All rows of a tile stay together: mma.sync of 16 tokens would need another transposition.
template <class Config>
  requires kMultipliesBytes<Config>
constexpr bool kDeals<Config> = false;

/// The power of two by which a row of q is divided, and its inverse. Counterpart: ByteRow of the CPU.
struct ByteRowUnit {
  float scale, inverse;

  /// The largest element may be 448 = 1.75 * 2^8 times the scale; the scale is at least 2^-126.
  __device__ __forceinline__ explicit ByteRowUnit(float largest) {
    const int exponent = max(9, (__float_as_int(largest) + 0x1fffff) >> 23);
    scale = __int_as_float((exponent - 8) << 23);
    inverse = __int_as_float((262 - exponent) << 23);
  }
};

/// Queries in registers, as the a operand of steps of 32.
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
          const int column = 4 * k + 2 * half + lane % 4 / 2; // columns of 16 bytes
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

  /// Restores the products of the original queries.
  template <int kTiles> __device__ __forceinline__ void restore(Fragment<kTiles> &products) const {
    products.scaleRows(scale_);
  }
  __device__ __forceinline__ void scales(float (&scale)[2]) const {
    scale[0] = scale_[0];
    scale[1] = scale_[1];
  }

  __device__ __forceinline__ void hold(unsigned shared) const {
    if constexpr (kSteps == 4) {
      ptx::useNever(query_, shared);
    } else {
#pragma unroll
      for (int k = 0; k < kSteps; ++k)
        ptx::useNever(query_[k], shared);
    }
  }

private:
  unsigned query_[kSteps][4];
  float scale_[2];
};

/// The reference of weights is the row's largest score so far, with the weight 2^8. Each step's sum of values
/// is added to the earlier sums anyway, so rescaling those costs nothing.
template <class Config, class Variant>
  requires kMultipliesBytes<Config>
struct WarpSums<Config, Variant> {
  using Rows = WarpRows<Config, Variant>;
  static constexpr int kColumnTiles = Config::kValueDim / 8;
  static constexpr float kBits = 8.f; ///< of the largest weight

  Fragment<kColumnTiles> out{};
  float maximum[2] = {-kInfinity, -kInfinity};
  float sum[2] = {0.f, 0.f}; ///< over this thread's columns only, until finish()

  /// Raises the references to the rows' largest scores of a step's two tiles; `top` covers this thread's
  /// columns. Earlier sums must be multiplied by `factor`.
  __device__ __forceinline__ void follow(const float (&top)[2], float (&factor)[2]) {
    factor[0] = factor[1] = 1.f;
    if (!__any_sync(~0u, top[0] > maximum[0] || top[1] > maximum[1]))
      return;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float reference = fmaxf(maximum[r], largestOfRow(top[r]));
      factor[r] = ptx::exp2Fast(fmaf(maximum[r], Rows::kUnit, -shiftOf(reference)));
      sum[r] *= factor[r];
      maximum[r] = reference;
    }
  }

  /// Turns a tile's scores into weights. The scores are to be multiplied by `unit`, then `common` is added.
  __device__ __forceinline__ void weigh(Fragment<8> &s, const float (&unit)[2], const float (&common)[2]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float shift = shiftOf(maximum[r]) - kBits;
      if constexpr (Rows::kRises)
        shift = fmaf(common[r], -Rows::kUnit, shift);
      s.forEachOfRow(r, [&](float &x) {
        x = ptx::exp2Fast(fmaf(x, unit[r] * Rows::kUnit, -shift));
        sum[r] += x;
      });
    }
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
  /// The same as for 16 bits.
  static __device__ __forceinline__ float shiftOf(float reference) {
    return reference == -kInfinity ? 0.f : reference * Rows::kUnit;
  }
};

/// How the computing warpgroup attends. A step has two tiles, 128 tokens, which halves the number of
/// barriers, waits and other work per step. Values are transposed into one area with rows of 128 bytes; each
/// tile gets half of each row.
template <class Config, class Variant>
  requires kMultipliesBytes<Config>
class ByteProducts<Config, Variant> {
  using By = Consumer<Config, Variant>;
  using L = Layout<Config>;
  using Rows = typename By::Rows;
  using Sums = typename By::Sums;
  static constexpr int kDim = Config::kValueDim;
  static constexpr int kSteps = Config::kTileKv / 32;  ///< of p . v, for one tile
  static constexpr int kLow = 64, kHigh = kDim - kLow; ///< columns that are multiplied together
  /// Whether products of the scaled queries can serve as scores: then the queries' scale, a power of two,
  /// goes into the exponent.
  static constexpr bool kFoldsRows = Rows::kFoldScale && !Variant::kHasScore;
  /// Whether no hook needs registers.
  static constexpr bool kIsPlain = !Variant::kHasScore && !Variant::kHasMask;
  static_assert(Config::kStages >= 2, "a step holds two");

  using Transposition = ValueTransposition<Config, kIsPlain>;

  /// The stages of a step's tiles and their barriers' phases; a step of one tile has its stage twice.
  struct Steps {
    int stage[2];
    unsigned parity[2];
  };
  /// The viewers of a tile: the queries that see all of it if no others see any of it, or one of these.
  static constexpr unsigned kWhole = ~0u;   ///< the warp's rows see all of it
  static constexpr unsigned kByToken = ~1u; ///< viewers differ between tokens

public:
  __device__ __forceinline__ explicit ByteProducts(const By &by) : by_(by) {}

  __device__ __forceinline__ void attend(const Rows &rows, const typename By::Queries &queries,
                                         Sums &sums) const {
    const int queryLo = rows.clamped(0) / Config::kRatio;
    const int queryEnd = rows.clamped(63) / Config::kRatio + 1;
    Fragment<16> s;
    Fragment<8> &first = s.template part<8>(0), &second = s.template part<8>(8);
    float common[2][2] = {}, factor[2], unit[2] = {1.f, 1.f};
    if constexpr (kFoldsRows)
      queries.scales(unit);
    unsigned weights[2][kSteps][4];
    const Transposition transposition(by_.ring_, by_.warp_, by_.lane_);
    bool areThere[2] = {};
    for (int at = by_.firstStep_; at < by_.endStep_; at += 2) {
      const Steps steps = stepsFrom(at);
      const int step = steps.stage[0], last = steps.stage[1];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (!areThere[i])
          ptx::mbarrierWait(by_.ring_.full(steps.stage[i]), steps.parity[i]);
      const TileFacts::Head heads[2] = {by_.ring_.slot(step).facts.head, by_.ring_.slot(last).facts.head};
      const bool areSeen[2] = {heads[0].viewed.isSeen(queryLo, queryEnd),
                               last != step && heads[1].viewed.isSeen(queryLo, queryEnd)};
      if (!areSeen[0] && !areSeen[1]) {
        release(step, last);
        areThere[0] = areThere[1] = false;
        continue;
      }
      if ((heads[0].isGathered | heads[1].isGathered) != 0)
        ptx::fenceAsyncProxy();
      by_.startKeys(queries, descriptor(by_.ring_.staged(step), 16), first);
      awaitAll(); // until all are done with the last step, or the last unit: its results are here
      // An unseen tile may not have been copied; the values of the other tile are valid numbers.
      const int valueSteps[2] = {areSeen[0] ? step : last, areSeen[1] ? last : step};
      unsigned viewers[2];
      if constexpr (kIsPlain) { // all loads are in flight together
        typename Transposition::template Pairs<Transposition::kTimes> pairs[2];
        transposition.load(valueSteps[0], 0, pairs[0]);
        transposition.load(valueSteps[1], 0, pairs[1]);
        viewers[0] = viewersOf(rows, heads[0], step, areSeen[0]);
        viewers[1] = viewersOf(rows, heads[1], last, areSeen[1]);
        transposition.store(0, 0, pairs[0]);
        by_.startKeys(queries, descriptor(by_.ring_.staged(last), 16), second);
        transposition.store(1, 0, pairs[1]);
      } else {
        viewers[0] = viewersOf(rows, heads[0], step, areSeen[0]);
        viewers[1] = viewersOf(rows, heads[1], last, areSeen[1]);
        transposition.template transpose<Transposition::kTimes>(valueSteps[0], 0);
        by_.startKeys(queries, descriptor(by_.ring_.staged(last), 16), second);
        transposition.template transpose<1>(valueSteps[1], 1);
      }
      ptx::fenceAsyncProxy(); // makes the transposed values visible to wgmma
      ptx::wgmmaWait<0>();
      ptx::wgmmaPin(s.tile);
      if constexpr (!kFoldsRows)
        queries.restore(s);
      score(rows, step, viewers[0], first, common[0]);
      score(rows, last, viewers[1], second, common[1]);
      release(step, last);
      float top[2];
#pragma unroll
      for (int r = 0; r < 2; ++r)
        top[r] = Rows::kRises ? fmaxf(first.largest(r) + common[0][r], second.largest(r) + common[1][r])
                              : s.largest(r) * unit[r];
      sums.follow(top, factor);

      Fragment<kLow / 8> low;
      Fragment<kHigh / 8> high;
      const unsigned long long values = descriptor(by_.ring_.values(0), 16);
      weigh(sums, first, unit, common[0], weights[0]);
      awaitAll(); // all values are ready
      start<0>(low, weights[0], values, false);
      weigh(sums, second, unit, common[1], weights[1]);
      start<0>(low, weights[1], values + 64 / 16, true);
      ptx::wgmmaFence();
      multiply<kLow>(high, weights[0], values, false);
      multiply<kLow>(high, weights[1], values + 64 / 16, true);
      ptx::wgmmaCommit();
      if constexpr (kIsPlain) { // tested before the wait for products
        const Steps next = stepsFrom(at + 2);
#pragma unroll
        for (int i = 0; i < 2; ++i)
          areThere[i] = ptx::mbarrierIsComplete(by_.ring_.full(next.stage[i]), next.parity[i]);
      }
      ptx::wgmmaWait<1>();
      ptx::wgmmaPin(low.tile);
      add(low, factor, sums.out.template part<kLow / 8>(0));
      ptx::wgmmaWait<0>();
      ptx::wgmmaPin(high.tile);
      add(high, factor, sums.out.template part<kHigh / 8>(kLow / 8));
      queries.hold(by_.ring_.base);
    }
    awaitAll(); // results reuse the memory of the values
  }

private:
  static __device__ __forceinline__ void awaitAll() { ptx::namedBarrierSync(/*barrier=*/1, 128); }
  __device__ __forceinline__ Steps stepsFrom(int first) const {
    const unsigned at[2] = {static_cast<unsigned>(first), // unsigned, so that the ring's modulo needs no sign
                            static_cast<unsigned>(first + 1 < by_.endStep_ ? first + 1 : first)};
    Steps steps;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      steps.stage[i] = static_cast<int>(at[i] % Config::kStages);
      steps.parity[i] = at[i] / Config::kStages & 1;
    }
    return steps;
  }

  __device__ __forceinline__ void release(int step, int last) const {
    __syncwarp();
    if (by_.lane_ == 0)
      ptx::mbarrierArrive(by_.ring_.empty(step), 1);
    if (by_.lane_ == 0 && last != step)
      ptx::mbarrierArrive(by_.ring_.empty(last), 1);
  }

  __device__ __forceinline__ unsigned viewersOf(const Rows &rows, const TileFacts::Head &head, int step,
                                                bool isSeen) const {
    const bool areAlike = !Variant::kHasMask && head.viewed.anyone == head.viewed.everyone;
    const unsigned some = areAlike ? head.viewed.anyone : kByToken;
    const unsigned all = by_.isCut(rows, head, step) ? some : kWhole;
    return isSeen ? all : kNobody;
  }

  /// Turns products into scores and hides tokens from rows that do not see them.
  __device__ __forceinline__ void score(const Rows &rows, int step, unsigned viewers, Fragment<8> &s,
                                        float (&common)[2]) const {
    TileSlot &slot = by_.ring_.slot(step);
    if (kIsPlain || viewers != kNobody) { // hooks would otherwise read tokens that were never copied
      by_.score(rows, slot.facts.head, step, /*cut=*/false, s, common);
      if constexpr (Rows::kCapsLate) {
        int largest[2];
        rows.forms().findLargest(s, largest);
        By::capLate(rows, largest, s);
      }
    }
    if (viewers == kByToken)
      by_.hide(rows, slot.records(), s);
    else if (viewers != kWhole)
      rows.hideAll(viewers, s);
  }

  /// Turns a tile's scores into a operands that match the transposed values.
  static __device__ __forceinline__ void weigh(Sums &sums, Fragment<8> &s, const float (&unit)[2],
                                               const float (&common)[2], unsigned (&weights)[kSteps][4]) {
    sums.weigh(s, unit, common);
#pragma unroll
    for (int k = 0; k < kSteps; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int n = 4 * k + i / 2 * 2, c = i % 2 * 2;
        weights[k][i] = ptx::packE4m3(s.tile[n][c], s.tile[n][c + 1], s.tile[n + 1][c], s.tile[n + 1][c + 1]);
      }
  }

  /// products += p . v of a tile, for the columns from kFirst on. The tensor cores compute the sums within a
  /// step; all other sums use float32. Column groups follow each other, since more products in flight would
  /// need too many registers.
  template <int kFirst, int kTiles>
  static __device__ __forceinline__ void multiply(Fragment<kTiles> &products,
                                                  const unsigned (&weights)[kSteps][4],
                                                  unsigned long long values, bool accumulate) {
#pragma unroll
    for (int k = 0; k < kSteps; ++k)
      ptx::WgmmaBytes<8 * kTiles>::step(products.tile, weights[k], values + kFirst * 128 / 16 + k * 32 / 16,
                                        accumulate || k > 0);
  }
  template <int kFirst, int kTiles>
  static __device__ __forceinline__ void start(Fragment<kTiles> &products,
                                               const unsigned (&weights)[kSteps][4],
                                               unsigned long long values, bool accumulate) {
    ptx::wgmmaFence();
    multiply<kFirst>(products, weights, values, accumulate);
    ptx::wgmmaCommit();
  }

  /// out = out * factor + products.
  template <int kTiles>
  static __device__ __forceinline__ void add(const Fragment<kTiles> &products, const float (&factor)[2],
                                             Fragment<kTiles> &out) {
#pragma unroll
    for (int n = 0; n < kTiles; ++n)
#pragma unroll
      for (int c = 0; c < 4; ++c)
        out.tile[n][c] = fmaf(out.tile[n][c], factor[c / 2], products.tile[n][c]);
  }

  const By &by_;
};

} // namespace deft::sm90
