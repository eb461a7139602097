#pragma once

#include "deft/ptx/cp_async.cuh"
#include "deft/ptx/ldmatrix.cuh"
#include "deft/ptx/mbarrier.cuh"
#include "deft/ptx/mma_sync.cuh"
#include "deft/ptx/wgmma.cuh"
#include "deft/sm90/join.cuh"

/// The warps that compute. How they share a unit depends on its rows, so that one launch serves items
/// of every size:
///   more than 64 rows: each warpgroup takes 64 rows of every tile, by wgmma;
///   more than 16:      each warpgroup takes every other tile, by wgmma; their sums are joined;
///   up to 16:          each warp takes 16 tokens of every other tile, by mma.sync; all are joined.
namespace deft::sm90 {

template <class Config, class Variant> class Consumer {
  using L = Layout<Config>;
  using Rows = WarpRows<Config, Variant>;
  using Sums = WarpSums<Config, Variant>;
  using Element = typename Config::Element;
  using Output = typename Config::Output;
  using Params = typename Variant::Params;
  static constexpr int kSteps = Config::kHeadDim / 16;
  static constexpr int kGroups = Config::kTileKv / 16; ///< of 16 tokens
  static_assert(Config::kTileKv == 64, "a warp of a warpgroup takes one group of 16 tokens");
  static_assert(Config::kTileQ <= 64 * kConsumerGroups && Config::kRatio <= Config::kTileQ);

public:
  static __device__ __forceinline__ void run(const abi::AttendArgs &args, const Params &params,
                                             const Ring<Config> &ring) {
    const int units = args.itemCount * Config::kKvHeads;
    int step = 0;
    for (int unit = blockIdx.x; unit < units; unit += gridDim.x) {
      Consumer consumer(args, ring, args.items[args.itemBegin + unit / Config::kKvHeads], step);
      if (consumer.tiles_ == 0)
        break;
      consumer.attend(params, unit % Config::kKvHeads);
      step += consumer.tiles_;
    }
  }

private:
  __device__ __forceinline__ Consumer(const abi::AttendArgs &args, const Ring<Config> &ring,
                                      const abi::Item &item, int firstStep)
      : args_(args), ring_(ring), item_(item), firstStep_(firstStep),
        tiles_((item.tokens + Config::kTileKv - 1) / Config::kTileKv), lane_(threadIdx.x % 32),
        warp_(threadIdx.x / 32 % 4), group_(threadIdx.x / 128 - 1) {}

  /// What the modes have in common stands once: each copy of it would cost compile time.
  __device__ __forceinline__ void attend(const Params &params, int kvHead) {
    const int rowCount = item_.queryCount * Config::kRatio;
    const bool isWide = rowCount > 16, splitRows = rowCount > 64;
    const int groupRow = splitRows ? group_ * 64 : 0;
    const Rows rows(args_, params, item_, kvHead, isWide ? groupRow + warp_ * 16 : 0);
    unsigned query[kSteps][4];
    rows.loadQueries(query);
    Sums sums;
    if (isWide)
      wide(rows, query, sums, groupRow, splitRows ? 0 : group_, splitRows ? 1 : kConsumerGroups);
    else
      narrow(rows, query, sums);
    sums.finish();

    const Join<Config, Variant> join(ring_.shared);
    if (!splitRows && !join.groups(sums, group_))
      return;
    if (!isWide)
      join.shareFacts(sums);
    const Target to = target(rows, sums);
    if (isWide) {
#pragma unroll
      for (int n = 0; n < Sums::kColumnTiles; ++n)
        write(to, n, sums.out[n]);
    } else {
      join.warps(sums, [&](int n, const float (&values)[4]) { write(to, n, values); });
    }
    if (isWide || warp_ == 0)
      writeLse(to, sums);
  }

  /// Waits for the tile's copies.
  __device__ __forceinline__ int acquire(int tile) const {
    const int step = firstStep_ + tile;
    ptx::mbarrierWait(ring_.full(step), step / Config::kStages & 1);
    return step;
  }

  /// Each stage expects every consumer warp; a warp counts for all those that skip the tile.
  __device__ __forceinline__ void release(int step, int groupStride) const {
    __syncwarp();
    if (lane_ == 0)
      ptx::mbarrierArrive(ring_.empty(step), groupStride);
  }

  // --- wgmma: 64 rows a warpgroup ------------------------------------------------------------------

  /// Tiles first, first + stride, ...; `groupRow` is the first row of the warpgroup. Where both warpgroups
  /// have every tile, its q.k is under way before the weights of the one before go to its values, so that the
  /// matrix units work while weights are made.
  __device__ __forceinline__ void wide(const Rows &rows, const unsigned (&query)[kSteps][4], Sums &sums,
                                       int groupRow, int first, int stride) const {
    const int queryLo = rows.clamped(groupRow) / Config::kRatio;
    const int queryEnd = rows.clamped(groupRow + 63) / Config::kRatio + 1;
    float s[2 * kGroups][4], factor[2];
    unsigned weights[kGroups][4];
    for (int tile = first, next;; tile = next) {
      tile = nextSeen(tile, stride, queryLo, queryEnd);
      if (tile >= tiles_)
        return;
      startKeys(query, ring_.keys(firstStep_ + tile), s);
      ptx::wgmmaWait<0>();
      ptx::wgmmaPin(s);
      score(rows, firstStep_ + tile, s);
      bool grows = sums.weigh(s, factor);
      for (;; tile = next) {
        if (grows)
          sums.rescale(factor);
#pragma unroll
        for (int g = 0; g < kGroups; ++g)
          Sums::pack(s[2 * g], s[2 * g + 1], weights[g]);
        next = tile + stride;
        // Only the tile that follows: this one's stage is not free yet, and the ring might be waiting for it.
        // Where the warpgroups take turns, they keep the matrix units busy without that.
        if (stride > 1 || next >= tiles_ || !isSeen(next, queryLo, queryEnd))
          break;
        ptx::fenceAsyncProxy();
        startKeys(query, ring_.keys(firstStep_ + next), s);
        startValues(weights, ring_.values(firstStep_ + tile), sums.out);
        ptx::wgmmaWait<1>();
        ptx::wgmmaPin(s);
        score(rows, firstStep_ + next, s);
        grows = sums.weigh(s, factor);
        ptx::wgmmaWait<0>();
        ptx::wgmmaPin(sums.out);
        release(firstStep_ + tile, stride);
      }
      startValues(weights, ring_.values(firstStep_ + tile), sums.out);
      ptx::wgmmaWait<0>();
      ptx::wgmmaPin(sums.out);
      release(firstStep_ + tile, stride);
    }
  }

  /// Whether queries [lo, end) of the item may see a token of the tile; its copies have landed. The same in
  /// the whole warpgroup.
  __device__ __forceinline__ bool isSeen(int tile, int lo, int end) const {
    return ring_.slot(acquire(tile)).facts.isSeen(lo, end);
  }

  /// The next such tile from `tile` on; those before it are released.
  __device__ __forceinline__ int nextSeen(int tile, int stride, int lo, int end) const {
    for (; tile < tiles_ && !isSeen(tile, lo, end); tile += stride)
      release(firstStep_ + tile, stride);
    ptx::fenceAsyncProxy(); // the copies were cp.async's, the reader is wgmma
    return tile;
  }

  /// From products to final scores.
  __device__ __forceinline__ void score(const Rows &rows, int step, float (&s)[2 * kGroups][4]) const {
    const TileFacts &facts = ring_.slot(step).facts;
    const TokenRecords tokens = ring_.slot(step).records();
    const bool whole = facts.isWhole(rows.queryLo(), rows.queryEnd());
    const bool cut = rows.visibility(whole, facts.bounds()) != Rows::kWhole;
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
      rows.score(tokens, g, false, s[2 * g], s[2 * g + 1]);
    if (cut) {
#pragma unroll
      for (int g = 0; g < kGroups; ++g)
        rows.hide(tokens, g, s[2 * g], s[2 * g + 1]);
    }
  }

  static __device__ __forceinline__ void startKeys(const unsigned (&query)[kSteps][4], unsigned keys,
                                                   float (&s)[2 * kGroups][4]) {
    ptx::wgmmaFence();
#pragma unroll
    for (int k = 0; k < kSteps; ++k)
      ptx::Wgmma<Element, Config::kTileKv>::template step<false>(
          s, query[k], ptx::wgmmaDescriptor(keys + k / 4 * L::kBlockBytes + k % 4 * 32, 16), k > 0);
    ptx::wgmmaCommit();
  }

  static __device__ __forceinline__ void startValues(const unsigned (&weights)[kGroups][4], unsigned values,
                                                     float (&out)[Sums::kColumnTiles][4]) {
    ptx::wgmmaFence();
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
      multiplyColumns<0>(weights[g], values + g * 16 * 128, out);
    ptx::wgmmaCommit();
  }

  /// out += p . v for 16 tokens and the columns from kFirst on, in the widest instructions that fit.
  template <int kFirst>
  static __device__ __forceinline__ void multiplyColumns(const unsigned (&p)[4], unsigned values,
                                                         float (&out)[Sums::kColumnTiles][4]) {
    if constexpr (kFirst < Config::kHeadDim) {
      constexpr int kLeft = Config::kHeadDim - kFirst;
      constexpr int kWidth = kLeft >= 128 ? 128 : kLeft >= 64 ? 64 : kLeft;
      ptx::Wgmma<Element, kWidth>::template step<true>(
          reinterpret_cast<float (&)[kWidth / 8][4]>(out[kFirst / 8]), p,
          ptx::wgmmaDescriptor(values + kFirst / 64 * L::kBlockBytes, L::kBlockBytes), true);
      multiplyColumns<kFirst + kWidth>(p, values, out);
    }
  }

  // --- mma.sync: 16 rows, every warp its own tokens ------------------------------------------------

  __device__ __forceinline__ void narrow(const Rows &rows, const unsigned (&query)[kSteps][4],
                                         Sums &sums) const {
    for (int tile = group_; tile < tiles_; tile += kConsumerGroups) {
      const int step = acquire(tile);
      multiplyGroup(rows, query, step, warp_, sums);
      release(step, kConsumerGroups);
    }
  }

  /// A warp's 16 rows and 16 tokens of a tile.
  __device__ __forceinline__ void multiplyGroup(const Rows &rows, const unsigned (&query)[kSteps][4],
                                                int step, int group, Sums &sums) const {
    const TileFacts &facts = ring_.slot(step).facts;
    if (!facts.isSeen(group, rows.queryLo(), rows.queryEnd()))
      return;
    const auto seen =
        rows.visibility(facts.isWhole(group, rows.queryLo(), rows.queryEnd()), facts.bounds(group));
    if (seen == Rows::kHidden)
      return;
    const TokenRecords tokens = ring_.slot(step).records();
    float s[2][4] = {};
    const int keyToken = group * 16 + lane_ % 8 + lane_ / 16 * 8;
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      unsigned b[4];
      ptx::ldmatrix4(b, ring_.keys(step) + L::offset(keyToken, 2 * k + lane_ / 8 % 2));
      ptx::mma16816<Element>(s[0], query[k], b[0], b[1]);
      ptx::mma16816<Element>(s[1], query[k], b[2], b[3]);
    }
    rows.score(tokens, group, seen == Rows::kCut, s[0], s[1]);
    float factor[2];
    if (sums.weigh(s, factor))
      sums.rescale(factor);
    unsigned p[4];
    Sums::pack(s[0], s[1], p);
    const int valueToken = group * 16 + lane_ % 16;
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      unsigned b[4];
      ptx::ldmatrix4Transposed(b, ring_.values(step) + L::offset(valueToken, 2 * k + lane_ / 16));
      ptx::mma16816<Element>(sums.out[2 * k], p, b[0], b[1]);
      ptx::mma16816<Element>(sums.out[2 * k + 1], p, b[2], b[3]);
    }
  }

  // --- results -------------------------------------------------------------------------------------

  /// Where this thread's two rows go: the output, or a partial. Found once, before the first store: the
  /// compiler must assume that a store changes what the next address is read from.
  struct Target {
    bool isPartial, isReal[2];
    long long place[2]; ///< of a row in the arrays of partials or of outputs
    float scale[2];
  };

  __device__ __forceinline__ Target target(const Rows &rows, const Sums &sums) const {
    Target target;
    target.isPartial = item_.partialBegin >= 0;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = rows.clamped(rows.row(r));
      target.isReal[r] = rows.isReal(rows.row(r));
      target.scale[r] = sums.normalizer(r);
      target.place[r] = target.isPartial ? static_cast<long long>(item_.partialBegin + row / Config::kRatio) *
                                                   Config::kQueryHeads +
                                               rows.headOf(row)
                                         : rows.place(row);
    }
    return target;
  }

  /// Column tile n of the rows.
  __device__ __forceinline__ void write(const Target &target, int n, const float (&values)[4]) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (!target.isReal[r])
        continue;
      const long long element = target.place[r] * Config::kHeadDim + n * 8 + lane_ % 4 * 2;
      const float low = values[2 * r] * target.scale[r], high = values[2 * r + 1] * target.scale[r];
      if (target.isPartial)
        *reinterpret_cast<float2 *>(args_.partialOut + element) = make_float2(low, high);
      else
        *reinterpret_cast<unsigned *>(static_cast<Output *>(args_.out) + element) =
            ptx::pack2<Output>(low, high);
    }
  }

  __device__ __forceinline__ void writeLse(const Target &target, const Sums &sums) const {
    float *lse = target.isPartial ? args_.partialLse : Config::kWithLse ? args_.lse : nullptr;
    if (lse == nullptr || lane_ % 4 != 0)
      return;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (target.isReal[r])
        lse[target.place[r]] = sums.lse(r);
    }
  }

  const abi::AttendArgs &args_;
  const Ring<Config> &ring_;
  const abi::Item item_;
  const int firstStep_, tiles_, lane_, warp_, group_;
};

} // namespace deft::sm90
