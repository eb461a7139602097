#pragma once

#include "deft/ptx/cp_async.cuh"
#include "deft/ptx/ldmatrix.cuh"
#include "deft/ptx/mbarrier.cuh"
#include "deft/ptx/mma_sync.cuh"
#include "deft/ptx/wgmma.cuh"
#include "deft/sm90/byte_products.cuh"
#include "deft/sm90/dealt_runs.cuh"
#include "deft/sm90/join.cuh"
#include "deft/sm90/key_making.cuh"
#include "deft/sm90/own_rows.cuh"
#include "deft/sm90/result_rows.cuh"
#include "deft/sm90/units.cuh"
#include "deft/sm90/warp_queries.cuh"

/// The computing warps. In wide blocks, the number of a unit's rows decides how they share it, so that one
/// launch serves items of every size:
///   more than 64 rows: each warpgroup takes 64 rows of every tile, by wgmma;
///   more than 16:      each warpgroup takes every other tile, by wgmma; their sums are joined;
///   up to 16:          each warp takes 16 tokens of every other tile, by mma.sync; all are joined.
namespace deft::sm90 {

template <class Config, class Variant> class Consumer {
  friend class ByteProducts<Config, Variant>;
  friend class OwnRows<Config, Variant>;
  using L = Layout<Config>;
  using Rows = WarpRows<Config, Variant>;
  using Sums = WarpSums<Config, Variant>;
  using WorthOf = Worth<Config, Variant>;
  using Key = typename Config::Key;
  using Value = typename Config::Value;
  using Results = ResultRows<Config, Variant>;
  /// With many columns of K, caps and array masks leave no registers for queries.
  static constexpr bool kIsDear =
      FormOf<Variant>::kIsCapped || (Variant::kHasMask && TokenArrays<Config>::kCount > 0);
  static constexpr bool kQueriesStay = L::kQueriesStay || (L::kIsLong && kIsDear);
  using Queries = WarpQueries<Config, kQueriesStay>;
  using Keys = KeyMaking<Config, Variant>;
  using Places = typename Results::Places;
  using Params = typename Variant::Params;
  static constexpr int kSteps = Config::kKeyDim / 16;         ///< of q . k
  static constexpr int kColumnPairs = Config::kValueDim / 16; ///< of p . v, each two tiles of 8 columns
  static constexpr int kGroups = Config::kTileKv / 16;        ///< groups of 16 tokens
  using Scores = Fragment<2 * kGroups>;                       ///< a warp's rows by a tile's tokens
  static constexpr int kScoredAtOnce = Config::kValueDim > 128 ? 1 : 2; ///< groups, as registers permit
  /// Whether to test the next tile's barrier during products, and to release stages without a branch. This
  /// makes light blocks slower; with many columns, caps leave too few registers.
  static constexpr bool kAsksAhead =
      L::kGroups > 1 && !(FormOf<Variant>::kIsCapped && Config::kValueDim > 128);
  /// Whether a tile's place is computed once for a warp (groupOfWarp). Light blocks get that anyway; caps
  /// leave too few registers for it.
  static constexpr bool kPlacesOnce = kAsksAhead && !FormOf<Variant>::kIsCapped;
  /// Whether a stage may be held while waiting for the next one.
  static constexpr bool kAhead = Config::kStages > 2;
  static_assert(!kDeals<Config> || !kQueriesStay, "their rows are in the warps' registers");
  static_assert(Config::kTileKv == 64, "a warp of a warpgroup takes one group of 16 tokens");
  static_assert(L::kGroups != 2 || Config::kStages % 2 == 0,
                "within a unit a warpgroup that takes every other tile has its own stages");
  static_assert(Config::kTileQ <= 64 * L::kGroups && Config::kRatio <= Config::kTileQ);

public:
  static __device__ __forceinline__ void run(const abi::AttendArgs &args, const Params &params,
                                             const Ring<Config> &ring) {
    const Units<Config> units(args);
    int step = 0, piece = 0;
    for (int unit = blockIdx.x; unit < units.count(); unit = units.next(unit)) {
      awaitPiece(ring, piece);
      Consumer consumer(args, ring, ring.head(piece).item, step);
      if (consumer.endStep_ == step) {
        if (units.isEmptyOneLast())
          break;
        consumer.releasePiece(piece++, 1);
        continue;
      }
      if constexpr (L::kGroups == 1)
        piece = consumer.attendAlone(params, units.kvHead(unit), piece);
      else if constexpr (L::kIsTall)
        piece = OwnRows<Config, Variant>(consumer).attend(params, units.kvHead(unit), piece);
      else
        piece = consumer.attend(params, units.kvHead(unit), piece);
      step = consumer.endStep_;
    }
  }

private:
  __device__ __forceinline__ Consumer(const abi::AttendArgs &args, const Ring<Config> &ring,
                                      const abi::Item &item, int firstStep)
      : args_(args), ring_(ring), item_(item), firstStep_(firstStep),
        endStep_(firstStep + tilesOf<Config>(item)), lane_(threadIdx.x % 32), warp_(threadIdx.x / 32 % 4),
        group_(groupOfWarp()) {}

  /// A shuffle tells the compiler that the value is uniform in the warp: derived values are computed once.
  static __device__ __forceinline__ int groupOfWarp() {
    const int group = threadIdx.x / 128 - 1;
    return kPlacesOnce ? __shfl_sync(~0u, group, 0) : group;
  }

  /// For the block's only computing warpgroup. Returns the next unit's piece of queries.
  __device__ __forceinline__ int attendAlone(const Params &params, int kvHead, int piece) {
    Rows rows(args_, params, item_, kvHead, warp_ * 16);
    const Queries queries = queriesOf(rows, piece, 0);
    setQueries(rows, piece, 0);
    Places places;
    leavePiece<false>(rows, piece, 0, places);
    Sums sums;
    if constexpr (L::kHoldsBytes)
      ByteProducts<Config, Variant>(*this).attend(rows, queries, sums);
    else
      wide(rows, queries, sums, 0, 0, 1);
    leavePiece<true>(rows, piece, 0, places);
    sums.finish();
    const Results results(args_, places, rows, sums);
    results.send(sums.out, halfBuffer());
    results.writeLse(sums);
    return piece + 1;
  }

  /// One function for all modes, which saves compile time. Returns the next unit's first piece of queries.
  __device__ __forceinline__ int attend(const Params &params, int kvHead, int piece) {
    const int rowCount = item_.queryCount * Config::kRatio;
    const bool isWide = rowCount > 16, splitRows = rowCount > kPieceRows;
    const int groupRow = splitRows ? group_ * kPieceRows : 0;
    Rows rows(args_, params, item_, kvHead, isWide ? groupRow + warp_ * 16 : 0);
    if (splitRows && group_ == 1) { // it has read the item from the first piece
      releasePiece(piece, 1);
      awaitPiece(ring_, piece + 1);
    }
    const int ownPiece = piece + (groupRow > 0 ? 1 : 0);
    const Queries queries = queriesOf(rows, ownPiece, groupRow);
    setQueries(rows, ownPiece, groupRow);
    Places places;
    leavePiece<false>(rows, ownPiece, groupRow, places);
    Sums sums;
    if (isWide)
      wide(rows, queries, sums, groupRow, splitRows ? 0 : group_, splitRows ? 1 : L::kGroups);
    else
      narrow(rows, queries, sums);
    leavePiece<true>(rows, ownPiece, groupRow, places);
    sums.finish();

    const Join<Config, Variant> join(ring_.shared);
    join.takeBuffers(group_, splitRows);
    if (splitRows || join.groups(sums, group_)) {
      if (!isWide)
        join.shareFacts(sums);
      // Computed again from the item, to hold fewer registers during the products.
      const Rows written(args_, params, places.item, kvHead, isWide ? groupRow + warp_ * 16 : 0);
      const Results results(args_, places, written, sums);
      if (isWide)
        results.send(sums.out, halfBuffer());
      else
        join.warps(sums, [&](int n, const Fragment<1> &values) { results.write(n, values); });
      if (isWide || warp_ == 0)
        results.writeLse(sums);
    }
    return piece + (splitRows ? 2 : 1);
  }

  static __device__ __forceinline__ void awaitPiece(const Ring<Config> &ring, int piece) {
    ptx::mbarrierWait(ring.pieceFull(piece), piece / L::kQueryPieces & 1);
  }

  __device__ __forceinline__ char *halfBuffer() const { // buffer in which this warp arranges its results
    return ring_.shared + L::kBufferOffset + warp_ * L::kBufferBytes + group_ * L::kHalfBufferBytes;
  }

  /// Each piece expects every consumer warp; a warp may also arrive for one that does not use the piece.
  __device__ __forceinline__ void releasePiece(int piece, int arrivals) const {
    __syncwarp();
    if (lane_ == 0)
      ptx::mbarrierArrive(ring_.pieceEmpty(piece), arrivals);
  }

  /// `groupRow` is the first row of the piece.
  __device__ __forceinline__ Queries queriesOf(const Rows &rows, int piece, int groupRow) const {
    return Queries(ring_.queries(piece), rows.row(0) - fragmentRow(lane_, 0) - groupRow);
  }

  /// Sets the positions and indices of the rows' queries, if hooks need them.
  __device__ __forceinline__ void setQueries(Rows &rows, int piece, int groupRow) const {
    if constexpr (Rows::kNeedsRow) {
      int position[2] = {}, caller[2] = {};
      if constexpr (Rows::kNeedsQuery) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int at = rows.clamped(rows.row(r)) - groupRow;
          position[r] = ring_.head(piece).queryPos[at];
          caller[r] = ring_.head(piece).callerIndex[at];
        }
      }
      rows.setQueries(position, caller);
    }
  }

  /// Reads the destination of this thread's two rows from the piece, then releases it: before the products if
  /// the queries are in registers, otherwise after them.
  template <bool kAfterProducts>
  __device__ __forceinline__ void leavePiece(const Rows &rows, int piece, int groupRow,
                                             Places &places) const {
    if constexpr (kAfterProducts == kQueriesStay) {
#pragma unroll
      for (int r = 0; r < 2; ++r)
        places.caller[r] = ring_.head(piece).callerIndex[rows.clamped(rows.row(r)) - groupRow];
      places.item = ring_.head(piece).item;
      releasePiece(piece, groupRow > 0 && !L::kIsTall ? 2 : 1);
    }
  }

  /// Waits for the tile's copies, unless they are known to have landed.
  __device__ __forceinline__ TileFacts::Head acquire(int step, bool isThere = false) const {
    if (!isThere)
      ptx::mbarrierWait(ring_.full(step), ring_.fullParity(step));
    return ring_.slot(step).facts.head;
  }
  /// Whether the copies have landed. Tested before the wait for products, so the answer costs no wait.
  __device__ __forceinline__ bool isThere(int step) const {
    return kAsksAhead && ptx::mbarrierIsComplete(ring_.full(step), ring_.fullParity(step));
  }

  /// Each stage expects every consumer warp; a warp also arrives for those that skip the tile.
  __device__ __forceinline__ void release(int step, int groupStride) const {
    __syncwarp();
    if constexpr (kAsksAhead)
      ptx::mbarrierArriveIf(lane_ == 0, ring_.empty(step), groupStride);
    else if (lane_ == 0)
      ptx::mbarrierArrive(ring_.empty(step), groupStride);
  }

  // --- wgmma: 64 rows for each warpgroup -----------------------------------------------------------

  /// Tiles first, first + stride, ...; `groupRow` is the warpgroup's first row. If both warpgroups take every
  /// tile, q.k of the next tile starts before the values of the current one are multiplied, so the tensor
  /// cores stay busy while weights are made.
  __device__ __forceinline__ void wide(const Rows &rows, const Queries &queries, Sums &sums, int groupRow,
                                       int first, int stride) const {
    const int queryLo = rows.clamped(groupRow) / Config::kRatio;
    const int queryEnd = rows.clamped(groupRow + 63) / Config::kRatio + 1;
    const WorthOf worth(args_, rows);
    Scores s;
    float common[2] = {}, factor[2];
    unsigned weights[kGroups][4];
    Turns<L::kGroups> turns(L::kGroups > 1 && stride == 1, group_, endStep_ - firstStep_);
    bool nextIsThere = false;
    for (int step = firstStep_ + first; step < endStep_; step += stride) {
      const unsigned long long keys = keysOf(step); // overlaps the tile's copy
      TileFacts::Head head = acquire(step, nextIsThere);
      nextIsThere = false;
      const Viewed own = kDeals<Config> ? ring_.slot(step).facts.group[warp_] : Viewed{};
      if (!head.viewed.isSeen(queryLo, queryEnd)) {
        turns.begin();
        turns.end();
        release(step, stride);
        continue;
      }
      if constexpr (kDeals<Config>)
        if (head.kind == TileFacts::Head::kDealt) {
          turns.begin();
          turns.end();
          multiplyGroup(rows, worth, queries, step, warp_, own, sums);
          release(step, stride);
          continue;
        }
      Keys::show(ring_, rows, head, step, warp_);
      turns.begin();
      startKeys(queries, keys, s);
      turns.end();
      bool cut = isCut(rows, head, step);
      ptx::wgmmaWait<0>();
      ptx::wgmmaPin(s.tile);
      queries.restore(s);
      score(rows, head, step, cut, s, common);
      worth.template give<Rows::kCapsLate>(rows, ring_.slot(step).records(), 0, s, common, cut);
      bool grows =
          weigh(rows, head.viewed.anyone, step, cut, step == firstStep_ + first, sums, s, common, factor);
      for (;;) {
        if (grows)
          sums.out.scaleRows(factor);
        rows.multiplyByFactors(ring_.slot(step).records(), 0, s);
#pragma unroll
        for (int g = 0; g < kGroups; ++g)
          packOperand<Value>(s.template part<2>(2 * g), weights[g]);
        // Only one tile ahead: this tile's stage is not free yet, and the ring might wait for it. If each
        // warpgroup has its own tiles, the two keep the tensor cores busy without this.
        if (!kAhead || stride > 1 || step + 1 >= endStep_)
          break;
        head = acquire(step + 1, nextIsThere);
        nextIsThere = kAsksAhead;
        if (!head.viewed.isSeen(queryLo, queryEnd) ||
            (kDeals<Config> && head.kind == TileFacts::Head::kDealt))
          break;
        Keys::show(ring_, rows, head, step + 1, warp_);
        turns.begin();
        startKeys(queries, keysOf(step + 1), s);
        startValues(weights, step, sums.out);
        turns.end();
        cut = isCut(rows, head, step + 1);
        nextIsThere = isThere(step + 2);
        ptx::wgmmaWait<1>();
        ptx::wgmmaPin(s.tile);
        queries.restore(s);
        score(rows, head, step + 1, cut, s, common);
        worth.template give<Rows::kCapsLate>(rows, ring_.slot(step + 1).records(), 0, s, common, cut);
        grows = weigh(rows, head.viewed.anyone, step + 1, cut, false, sums, s, common, factor);
        ptx::wgmmaWait<0>();
        ptx::wgmmaPin(sums.out.tile);
        release(step, stride);
        ++step;
      }
      startValues(weights, step, sums.out);
      if (!kAhead || stride > 1)
        nextIsThere = isThere(step + stride);
      ptx::wgmmaWait<0>();
      ptx::wgmmaPin(sums.out.tile);
      queries.hold(ring_.base);
      release(step, stride);
    }
  }

  __device__ __forceinline__ bool isCut(const Rows &rows, const TileFacts::Head &head, int step) const {
    // True if some rows of the warp do not see the whole tile.
    const bool whole = head.viewed.isWhole(rows.queryLo(), rows.queryEnd());
    return rows.visibility(whole, ring_.slot(step).facts.bounds) != Rows::kWhole;
  }

  /// Turns products into final scores, except that `common` of the row must still be added. Products that are
  /// capped late are left as they are.
  __device__ __forceinline__ void score(const Rows &rows, const TileFacts::Head &head, int step, bool cut,
                                        Scores &s, float (&common)[2]) const {
    const TokenRecords tokens = ring_.slot(step).records();
    bool isScored = Rows::kCapsLate;
    if constexpr (Rows::kRises) {
      isScored = head.kind == TileFacts::Head::kRising;
      if (isScored)
        rows.scoreRising(tokens, s, common);
      else
        common[0] = common[1] = 0.f;
    }
    if (!isScored) {
#pragma unroll
      for (int g = 0; g < kGroups; g += kScoredAtOnce)
        rows.template score<kScoredAtOnce>(tokens, g, s.template part<2 * kScoredAtOnce>(2 * g));
    }
    if (cut && !Rows::kCapsLate)
      hide(rows, tokens, s);
  }

  __device__ __forceinline__ void hide(const Rows &rows, const TokenRecords &tokens, Scores &s) const {
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
      rows.hide(tokens, g, s.template part<2>(2 * g));
  }

  /// WarpSums::weigh for the result of `score`. `cut`: the value of isCut(). `viewers`: the range of queries
  /// that see some of the tile. `isFirst`: the unit's first tile.
  __device__ __forceinline__ bool weigh(const Rows &rows, unsigned viewers, int step, bool cut, bool isFirst,
                                        Sums &sums, Scores &s, const float (&common)[2],
                                        float (&factor)[2]) const {
    if constexpr (Rows::kCapsLate) {
      const auto sees = [&](int r) { return rows.isAmong(r, viewers); };
      const auto hideTokens = [&](Scores &scores) { hide(rows, ring_.slot(step).records(), scores); };
      int largest[2];
      rows.forms().findLargest(s, largest);
      if (sums.weighSmall(rows.forms(), largest, s, cut, isFirst, sees, hideTokens))
        return false;
      capLate(rows, largest, s);
      if (cut)
        hideTokens(s);
    }
    return sums.weigh(s, common, factor);
  }

  /// For products that are not all small. Short code is faster in light blocks (docs/kernels.md#code-size).
  template <int kTiles>
  static __device__ __forceinline__ void capLate(const Rows &rows, const int (&largest)[2],
                                                 Fragment<kTiles> &s) {
    if constexpr (L::kGroups == 1)
      rows.forms().capAnew(s, largest);
    else
      rows.forms().cap(s, largest);
  }

  __device__ __forceinline__ unsigned long long keysOf(int step) const {
    return descriptor(ring_.keys(step), 16);
  }

  __device__ __forceinline__ void startKeys(const Queries &queries, unsigned long long keys,
                                            Scores &s) const {
    ptx::wgmmaFence();
    queries.startKeys(keys, s);
    ptx::wgmmaCommit();
  }

  __device__ __forceinline__ void startValues(const unsigned (&weights)[kGroups][4], int step,
                                              Fragment<Sums::kColumnTiles> &out) const {
    const unsigned long long values = descriptor(ring_.values(step), L::kBlockBytes);
    ptx::wgmmaFence();
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
      multiplyColumns<0>(weights[g], values + g * 16 * 128 / 16, out);
    ptx::wgmmaCommit();
  }

  /// out += p . v for 16 tokens and the columns from kFirst on, in the widest possible instructions.
  template <int kFirst>
  static __device__ __forceinline__ void multiplyColumns(const unsigned (&p)[4], unsigned long long values,
                                                         Fragment<Sums::kColumnTiles> &out) {
    if constexpr (kFirst < Config::kValueDim) {
      constexpr int kLeft = Config::kValueDim - kFirst;
      constexpr int kWidth = kLeft >= 128 ? 128 : kLeft >= 64 ? 64 : kLeft;
      ptx::Wgmma<Value, kWidth>::template step<true>(out.template part<kWidth / 8>(kFirst / 8).tile, p,
                                                     values + kFirst / 64 * L::kBlockBytes / 16, true);
      multiplyColumns<kFirst + kWidth>(p, values, out);
    }
  }

  // --- mma.sync: 16 rows, each warp has its own tokens ---------------------------------------------

  __device__ __forceinline__ void narrow(const Rows &rows, const Queries &queries, Sums &sums) const {
    const WorthOf worth(args_, rows);
    for (int step = firstStep_ + group_; step < endStep_; step += L::kGroups) {
      acquire(step);
      multiplyGroup(rows, worth, queries, step, warp_, ring_.slot(step).facts.group[warp_], sums);
      release(step, L::kGroups);
    }
  }

  /// A warp's 16 rows by 16 tokens of a tile; `viewed` describes this group of tokens.
  __device__ __forceinline__ void multiplyGroup(const Rows &rows, const WorthOf &worth,
                                                const Queries &queries, int step, int group,
                                                const Viewed &viewed, Sums &sums) const {
    if (!viewed.isSeen(rows.queryLo(), rows.queryEnd()))
      return;
    const auto seen =
        rows.visibility(viewed.isWhole(rows.queryLo(), rows.queryEnd()), ring_.slot(step).facts.bounds);
    if (seen == Rows::kHidden)
      return;
    const TokenRecords tokens = ring_.slot(step).records();
    Keys::make(ring_, rows, step, group);
    Fragment<2> s{};
    const int keyToken = group * 16 + lane_ % 8 + lane_ / 16 * 8;
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      unsigned a[4], b[4];
      queries.operand(k, a);
      ptx::ldmatrix4(b, ring_.keys(step) + L::offset(keyToken, 2 * k + lane_ / 8 % 2));
      ptx::mma16816<Key>(s.tile[0], a, b[0], b[1]);
      ptx::mma16816<Key>(s.tile[1], a, b[2], b[3]);
    }
    queries.restore(s);
    const bool cut = seen == Rows::kCut;
    const auto hideGroup = [&](Fragment<2> &scores) {
      if (Rows::kCapsLate && viewed.anyone == viewed.everyone)
        rows.hideAll(viewed.anyone, scores);
      else
        rows.hide(tokens, group, scores);
    };
    bool areSmall = false;
    if constexpr (Rows::kCapsLate)
      worth.template give<true>(rows, tokens, group, s, {}, cut);
    if constexpr (Rows::kCapsLate) {
      const auto sees = [&](int r) { return rows.isAmong(r, viewed.anyone); };
      int largest[2];
      rows.forms().findLargest(s, largest);
      areSmall = sums.weighSmall(rows.forms(), largest, s, cut, sees, hideGroup);
      if (!areSmall)
        capLate(rows, largest, s);
    } else {
      rows.template score<1>(tokens, group, s);
    }
    if (!areSmall) {
      if (cut)
        hideGroup(s);
      if constexpr (!Rows::kCapsLate)
        worth.template give<false>(rows, tokens, group, s, {}, cut);
      float factor[2];
      if (sums.weigh(s, {}, factor))
        sums.out.scaleRows(factor);
    }
    rows.multiplyByFactors(tokens, group, s);
    unsigned p[4];
    packOperand<Value>(s, p);
    const int valueToken = group * 16 + lane_ % 16;
#pragma unroll
    for (int pair = 0; pair < kColumnPairs; ++pair) {
      unsigned b[4];
      ptx::ldmatrix4Transposed(b, ring_.values(step) + L::offset(valueToken, 2 * pair + lane_ / 16));
      ptx::mma16816<Value>(sums.out.tile[2 * pair], p, b[0], b[1]);
      ptx::mma16816<Value>(sums.out.tile[2 * pair + 1], p, b[2], b[3]);
    }
  }

  const abi::AttendArgs &args_;
  const Ring<Config> &ring_;
  const abi::Item item_;
  const int firstStep_, endStep_, lane_, warp_, group_;
};

} // namespace deft::sm90
