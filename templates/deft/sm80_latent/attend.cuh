#pragma once

#include "deft/abi.h"
#include "deft/common/key_hook.cuh"
#include "deft/common/plan_ahead.cuh"
#include "deft/common/sigmoid_weight.cuh"
#include "deft/common/warp_rows.cuh"
#include "deft/common/worth.cuh"
#include "deft/ptx/block.cuh"
#include "deft/ptx/convert.cuh"
#include "deft/ptx/cp_async.cuh"
#include "deft/ptx/cp_async_or_zero.cuh"
#include "deft/ptx/ldmatrix.cuh"
#include "deft/ptx/mma_sync.cuh"
#include "deft/ptx/named_barrier.cuh"
#include "deft/sm80/softmax.cuh"
#include "deft/sm80_latent/byte_tiles.cuh"
#include "deft/sm80_latent/given_lists.cuh"

/// Attention of an item's rows to its runs in a latent cache, by mma.sync and a ring of tiles that cp.async
/// fills. The rows of a tile are keys; their first columns are also the values, so a token is read once. A
/// block works on one unit, an item for one group of query heads.
///
/// Warps with the same 16 rows share the dims: each computes a part of q.k for all tokens of a tile,
/// and they add these parts through shared memory. Then each of them has all scores, makes the same
/// weights, and multiplies them by its own columns. So queries are read once, and warps exchange no
/// weights.
///
/// For a cache of bytes, a tile is converted before it is computed (byte_tiles.cuh).
///
/// One step of the ring: wait for tile t; start the copies of tile t + stages - 1, whose token records the
/// previous step wrote; start the records of tile t + stages; compute tile t.
namespace deft::sm80_latent {

template <class Config, class Variant> class Attend {
  using Layout = SharedLayout<Config>;
  using Split = Shares<Config>;
  using KeyRows = typename Layout::KeyRows;
  using QueryRows = typename Layout::QueryRows;
  using Query = typename Config::Query;
  using Key = typename Config::Key;
  using Value = typename Config::Value;
  using Params = typename Variant::Params;
  using Rows = WarpRows<Config, Variant>;
  using Cursor = typename CursorOf<Config>::Type;

  static constexpr int kThreads = 32 * Config::kWarps;
  static constexpr int kSharers = Split::kSharers;
  static constexpr int kGroups = Config::kTileKv / 16; ///< groups of 16 tokens
  static constexpr int kStride = 2 * kSharers;         ///< 16-byte columns from a warp's step to its next one
  static constexpr int kLatentColumns = Config::kValueDim / 8; ///< of 16 bytes
  static constexpr bool kEvenSteps = Split::kSteps % kSharers == 0,
                        kEvenPairs = Split::kPairs % kSharers == 0;

  static_assert(kIsLatent<Config> && kIsSame<Query, Key> && kIsSame<Key, Value> && sizeof(Key) == 2);
  static_assert(!HasKey<Variant>, "values are keys as they come");
  static_assert(Config::kTileKv % 16 == 0 && Config::kTileKv <= kThreads, "one thread a token record");
  static_assert(Config::kStages >= 2);

public:
  static __device__ __forceinline__ void run(const abi::AttendArgs &args, const Params &params) {
    char *shared = ptx::dynamicShared<128>();
    const int units = args.itemCount * Config::kKvHeads;
    askForPlan(args, threadIdx.x, kThreads);
    if constexpr (kListsAreGiven<Config>)
      ptx::allowDependents();
    for (int unit = blockIdx.x; unit < units; unit += gridDim.x) {
      const abi::Item item = args.items[args.itemBegin + unit / Config::kKvHeads];
      if (item.tokens == 0)
        break;
      Attend attend(args, params, shared, item, unit % Config::kKvHeads);
      attend.walk();
      attend.write(); // the next walk has a barrier before it overwrites the ring
    }
    // Blocks without a unit wait as well: later kernels rely on the end of the queries' maker.
    Rows::awaitQueries();
  }

private:
  __device__ __forceinline__ Attend(const abi::AttendArgs &args, const Params &params, char *shared,
                                    const abi::Item &item, int headGroup)
      : args_(args), shared_(shared), base_(ptx::sharedAddress(shared)), item_(item), lane_(threadIdx.x % 32),
        rowWarp_(Split::kRowWarps == 1 ? 0 : threadIdx.x / 32 / kSharers),
        sharer_(threadIdx.x / 32 % kSharers), rows_(args, params, item_, headGroup, rowWarp_ * 16),
        softmax_(Rows::kUnit) {}

  /// Whether this warp has a k-th step, or a k-th pair of tiles.
  __device__ __forceinline__ bool hasStep(int k) const {
    return kEvenSteps || k + 1 < Split::kStepsOfWarp || k * kSharers + sharer_ < Split::kSteps;
  }
  __device__ __forceinline__ bool hasPair(int i) const {
    return kEvenPairs || i + 1 < Split::kPairsOfWarp || i * kSharers + sharer_ < Split::kPairs;
  }

  /// Waits for the warps of the same rows.
  __device__ __forceinline__ void meetSharers() const {
    if constexpr (kSharers > 1)
      ptx::namedBarrierSync(1 + rowWarp_, 32 * kSharers);
    else
      __syncwarp();
  }

  // --- queries ---------------------------------------------------------------------------------

  /// Copies the queries that stay in shared memory, in the first group of copies.
  __device__ __forceinline__ void copyQueries() const {
    if constexpr (Layout::kHasQueries) {
      constexpr int kColumns = Layout::kQueryDims / 8;
      rows_.awaitQueries();
      for (int i = threadIdx.x; i < Config::kTileQ * kColumns; i += kThreads) {
        const int row = i / kColumns, column = i % kColumns;
        ptx::cpAsync16(base_ + Layout::kQueryOffset + QueryRows::Rows::offset(row, column),
                       rows_.queryRow(rows_.clamped(row)) + Split::kDimsHeld + column * 8);
      }
    }
  }

  /// Loads the queries that stay in registers, directly from global memory.
  __device__ __forceinline__ void loadQueries() {
    if constexpr (Split::kStepsHeld > 0) {
      rows_.awaitQueries();
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const Query *from =
            rows_.queryRow(rows_.clamped(rows_.row(r))) + sharer_ * 16 + fragmentColumn(lane_);
#pragma unroll
        for (int k = 0; k < Split::kStepsHeld; ++k) {
          const bool isThere = hasStep(k);
          const Query *at = from + (isThere ? k * kSharers * 16 : 0);
          query_[k][r] = isThere ? *reinterpret_cast<const unsigned *>(at) : 0u;
          query_[k][r + 2] = isThere ? *reinterpret_cast<const unsigned *>(at + 8) : 0u;
        }
      }
    }
  }

  __device__ __forceinline__ void queryFragment(int k, unsigned (&a)[4]) const {
    if (k < Split::kStepsHeld) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[i] = query_[k][i];
    } else {
      ptx::ldmatrix4(a, base_ + Layout::kQueryOffset +
                            QueryRows::template offset<kStride>(
                                rowWarp_ * 16 + lane_ % 16, 2 * sharer_ + lane_ / 16, k - Split::kStepsHeld));
    }
  }

  // --- the ring --------------------------------------------------------------------------------

  __device__ __forceinline__ TokenSlot<Config> tokenSlot(int tile) const {
    return TokenSlot<Config>(shared_, tile % Layout::kTokenSlots);
  }

  /// The offset of the tile's slot in shared memory.
  static __device__ __forceinline__ int slotOffset(int tile) {
    return tile % Config::kStages * Layout::kSlotBytes;
  }
  __device__ __forceinline__ unsigned keysOf(int tile) const {
    return base_ + (Layout::kConverts ? Layout::kConvertedOffset : slotOffset(tile));
  }
  /// Converts a tile that has landed, before it is computed.
  __device__ __forceinline__ void convert(int tile) const {
    if constexpr (Layout::kConverts) {
      ByteTiles<Config>::convert(shared_ + slotOffset(tile), shared_ + Layout::kConvertedOffset);
      __syncthreads();
    }
  }

  /// Whether the list has no token at this place.
  static __device__ __forceinline__ bool isNone(const Cursor &cursor) {
    if constexpr (kListsAreGiven<Config>)
      return cursor.isNone();
    else
      return false;
  }

  __device__ __forceinline__ void store(const Cursor &cursor, const TokenSlot<Config> &slot) const {
    slot.place[threadIdx.x] = make_uint2(cursor.place(args_.kCache, 0), cursor.place(args_.vCache, 0));
    cursor.record(slot.records, threadIdx.x);
    if constexpr (TokenArrays<Config>::kCount > 0) { // in the group of copies that is committed next
      const unsigned elements = ptx::sharedAddress(slot.records.elements + threadIdx.x);
      Variant::forEachElement(rows_.params(), cursor.slot(), 0, [&](int i, const void *element) {
        if (isNone(cursor))
          slot.records.elements[i * Config::kTileKv + threadIdx.x] = 0;
        else
          ptx::cpAsync4(elements + i * Config::kTileKv * 4, element);
      });
    }
  }

  /// Copies zeros for missing tokens of a list: the cache may hold NaN, which a weight of 0 does not remove.
  static __device__ __forceinline__ void copy(unsigned shared, const char *from, bool isThere) {
    if constexpr (kListsAreGiven<Config>)
      ptx::cpAsync16OrZero(shared, from, isThere);
    else
      ptx::cpAsync16(shared, from);
  }

  /// Eight lanes copy lines of 128 bytes of a token. If there are enough lanes, several groups of eight share
  /// a token.
  __device__ __forceinline__ void startCopies(int tile) const {
    if constexpr (Layout::kConverts) {
      ByteTiles<Config>::startCopies(args_, tokenSlot(tile), base_ + slotOffset(tile));
      return;
    }
    constexpr int kEights = kThreads / 8;
    constexpr int kOfToken = kEights > Config::kTileKv ? kEights / Config::kTileKv : 1;
    constexpr int kTokensAtOnce = kEights / kOfToken;
    constexpr int kLines = (KeyRows::kColumns + 7) / 8, kEach = (kLines + kOfToken - 1) / kOfToken;
    const TokenSlot<Config> slot = tokenSlot(tile);
    const unsigned keys = keysOf(tile);
    const int firstColumn = threadIdx.x / 8 % kOfToken * 8 + threadIdx.x % 8;
    const char *latent = static_cast<const char *>(args_.k) + firstColumn * 16;
    const char *other = static_cast<const char *>(args_.v) + (firstColumn - kLatentColumns) * 16;
#pragma unroll 1
    for (int token = threadIdx.x / 8 / kOfToken; token < Config::kTileKv; token += kTokensAtOnce) {
      const uint2 place = slot.place[token];
      const bool isThere = !kListsAreGiven<Config> || place.x != kNowhere;
      const char *const latentOfToken = atPlace<Config, Key>(latent, isThere ? place.x : 0u);
      const char *const otherOfToken = atPlace<Config, Key>(other, isThere ? place.y : 0u);
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int least = i * kOfToken * 8, most = least + kOfToken * 8; // columns of all lanes
        const int column = least + firstColumn;
        const bool isLatent = most <= kLatentColumns || (least < kLatentColumns && column < kLatentColumns);
        if (most <= KeyRows::kColumns || column < KeyRows::kColumns)
          copy(keys + KeyRows::template offset<kOfToken * 8>(token, firstColumn, i),
               (isLatent ? latentOfToken : otherOfToken) + least * 16, isThere);
      }
    }
  }

  __device__ __forceinline__ void walk() {
    const int tiles = (item_.tokens + Config::kTileKv - 1) / Config::kTileKv;
    const bool recorder = threadIdx.x < Config::kTileKv;
    Cursor cursor(args_, item_, threadIdx.x % Config::kTileKv);
    if (recorder) {
      for (int tile = 0; tile < Config::kStages && tile < tiles; ++tile) {
        cursor.fetch(args_);
        store(cursor, tokenSlot(tile));
      }
    }
    __syncthreads();
    copyQueries();
#pragma unroll
    for (int tile = 0; tile < Config::kStages - 1; ++tile) {
      if (tile < tiles)
        startCopies(tile);
      ptx::cpAsyncCommit();
    }
    loadQueries();
    rows_.loadQueryFacts(); // overlaps the copies
    const Worth<Config, Variant> worth(args_, rows_);
    const bool hasRows = rows_.isReal(rowWarp_ * 16);

    for (int tile = 0; tile < tiles; ++tile) {
      ptx::cpAsyncWait<Config::kStages - 2>();
      __syncthreads();
      if (tile + Config::kStages - 1 < tiles)
        startCopies(tile + Config::kStages - 1);
      ptx::cpAsyncCommit();
      const bool records = recorder && tile + Config::kStages < tiles;
      if (records)
        cursor.fetch(args_);
      convert(tile);
      if (hasRows)
        computeTile(tile, worth);
      if (records)
        store(cursor, tokenSlot(tile + Config::kStages));
    }
    if constexpr (!Variant::kSigmoid)
      softmax_.finish();
  }

  // --- one tile --------------------------------------------------------------------------------

  __device__ __forceinline__ void computeTile(int tile, const Worth<Config, Variant> &worth) {
    const TokenRecords tokens = tokenSlot(tile).records;
    const unsigned keys = keysOf(tile);

    typename Rows::Visibility state[kGroups];
    bool anySeen = false;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      state[g] = rows_.visibility(tokens, g);
      anySeen = anySeen || state[g] != Rows::kHidden;
    }
    if (!anySeen) // all warps of the same rows agree
      return;

    Fragment<2 * kGroups> s;
    multiplyKeys(keys, s);
    addParts(s);
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      Fragment<2> &scores = s.template part<2>(2 * g);
      if (state[g] == Rows::kHidden) {
        scores.forEach([](float &x, int, int) { x = -kInfinity; });
        continue;
      }
      rows_.template score<1>(tokens, g, scores);
      if (state[g] == Rows::kCut)
        rows_.hide(tokens, g, scores);
      if (sharer_ == 0)
        worth.template give<false>(rows_, tokens, g, scores, {}, false);
    }

    if constexpr (Variant::kSigmoid) {
      s.forEach([](float &x, int, int) { x = sigmoidWeight(x); });
    } else {
      float rescale[2];
      softmax_.step(s, rescale);
      if (__any_sync(~0u, rescale[0] != 1.f || rescale[1] != 1.f)) // mostly in the first tiles
        out_.scaleRows(rescale);
    }
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
      if (state[g] != Rows::kHidden) {
        rows_.multiplyByFactors(tokens, g, s.template part<2>(2 * g));
        multiplyValues(keys, g, s.template part<2>(2 * g));
      }
  }

  /// s = q . k over the warp's dims: one ldmatrix per k-step and 16 tokens gives two n8 tiles.
  __device__ __forceinline__ void multiplyKeys(unsigned keys, Fragment<2 * kGroups> &s) const {
    s.forEach([](float &x, int, int) { x = 0.f; });
    const int token = lane_ % 8 + lane_ / 16 * 8, column = 2 * sharer_ + lane_ / 8 % 2;
#pragma unroll
    for (int k = 0; k < Split::kStepsOfWarp; ++k) {
      if (!hasStep(k))
        break;
      unsigned a[4];
      queryFragment(k, a);
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        unsigned b[4];
        ptx::ldmatrix4(b, keys + KeyRows::template offset<kStride>(token, column, k) +
                              g * 16 * KeyRows::kRowBytes);
        ptx::mma16816<Key>(s.tile[2 * g], a, b[0], b[1]);
        ptx::mma16816<Key>(s.tile[2 * g + 1], a, b[2], b[3]);
      }
    }
  }

  /// Adds up the products over all dims. The block's next barrier separates these reads from the next tile's
  /// parts.
  __device__ __forceinline__ void addParts(Fragment<2 * kGroups> &s) const {
    if constexpr (kSharers > 1) {
      char *const parts = shared_ + Layout::kPartOffset + rowWarp_ * kSharers * Layout::kPartOfWarp;
#pragma unroll
      for (int n = 0; n < 2 * kGroups; ++n)
        *reinterpret_cast<float4 *>(parts + sharer_ * Layout::kPartOfWarp + n * 512 + lane_ * 16) =
            make_float4(s.tile[n][0], s.tile[n][1], s.tile[n][2], s.tile[n][3]);
      meetSharers();
      // In a fixed order, so that all warps get the same sums.
#pragma unroll
      for (int n = 0; n < 2 * kGroups; ++n) {
#pragma unroll
        for (int w = 0; w < kSharers; ++w) {
          const float4 part =
              *reinterpret_cast<const float4 *>(parts + w * Layout::kPartOfWarp + n * 512 + lane_ * 16);
          s.tile[n][0] = w == 0 ? part.x : s.tile[n][0] + part.x;
          s.tile[n][1] = w == 0 ? part.y : s.tile[n][1] + part.y;
          s.tile[n][2] = w == 0 ? part.z : s.tile[n][2] + part.z;
          s.tile[n][3] = w == 0 ? part.w : s.tile[n][3] + part.w;
        }
      }
    }
  }

  /// out += p . v for the warp's columns and 16 tokens.
  __device__ __forceinline__ void multiplyValues(unsigned keys, int group, const Fragment<2> &weights) {
    unsigned p[4];
    packOperand<Value>(weights, p);
    const int token = lane_ % 16, column = 2 * sharer_ + lane_ / 16;
#pragma unroll
    for (int i = 0; i < Split::kPairsOfWarp; ++i) {
      if (!hasPair(i))
        break;
      unsigned b[4];
      ptx::ldmatrix4Transposed(b, keys + KeyRows::template offset<kStride>(token, column, i) +
                                      group * 16 * KeyRows::kRowBytes);
      ptx::mma16816<Value>(out_.tile[2 * i], p, b[0], b[1]);
      ptx::mma16816<Value>(out_.tile[2 * i + 1], p, b[2], b[3]);
    }
  }

  // --- the end of a unit -----------------------------------------------------------------------

  /// Normalises and writes the output or a partial result, through shared memory for 16-byte stores.
  __device__ __forceinline__ void write() const {
    const bool isPartial = item_.partialBegin >= 0;
    __syncthreads(); // the ring is free
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = rows_.row(r), known = rows_.clamped(row);
      float share = 1.f, lse = 0.f;
      if constexpr (!Variant::kSigmoid) {
        const float sum = softmax_.sum[r], top = softmax_.maximum[r];
        share = sum > 0.f ? 1.f / sum : 0.f;
        lse = ((top == -kInfinity ? 0.f : top * Rows::kUnit) + ptx::log2Fast(sum)) * kLn2; // no key: -inf
        if constexpr (HasSink<Variant>) {
          if (!isPartial) {
            const SunkRow whole = rows_.withSink(known, lse);
            share *= whole.share;
            lse = whole.lse;
          }
        }
      }
      if (sharer_ == 0 && isFirstOfRow(lane_) && rows_.isReal(row))
        writeLse(row, lse);
      FinishedRow facts{};
      if constexpr (HasOutput<Variant>)
        facts = rows_.finished(known);
#pragma unroll
      for (int n = 0; n < 2 * Split::kPairsOfWarp; ++n) {
        if (!hasPair(n / 2))
          break;
        const int column = (n / 2 * kSharers + sharer_) * 16 + n % 2 * 8 + fragmentColumn(lane_);
        float x = out_.tile[n][2 * r] * share, y = out_.tile[n][2 * r + 1] * share;
        if constexpr (HasOutput<Variant>) {
          if (!isPartial) {
            x = facts.template element<Variant>(rows_.params(), x, column);
            y = facts.template element<Variant>(rows_.params(), y, column + 1);
          }
        }
        *reinterpret_cast<unsigned *>(shared_ + row * Layout::kResultStride + column * 2) =
            ptx::packResult<Config>(isPartial, x, y);
      }
    }
    meetSharers();
    for (int i = sharer_ * 32 + lane_; i < 16 * kLatentColumns; i += 32 * kSharers) {
      const int row = rowWarp_ * 16 + i / kLatentColumns, column = i % kLatentColumns;
      if (rows_.isReal(row))
        resultRow(row)[column] =
            *reinterpret_cast<const uint4 *>(shared_ + row * Layout::kResultStride + column * 16);
    }
  }

  /// The slot of the row's partial result for its head.
  __device__ __forceinline__ long long partialOf(int row) const {
    return static_cast<long long>(item_.partialBegin + row / Config::kRatio) * Config::kQueryHeads +
           rows_.headOf(row);
  }

  __device__ __forceinline__ void writeLse(int row, float lse) const {
    if (item_.partialBegin >= 0)
      args_.partialLse[partialOf(row)] = lse;
    else if (Config::kWithLse && args_.lse != nullptr)
      args_.lse[static_cast<long long>(rows_.callerIndex(row)) * Config::kQueryHeads + rows_.headOf(row)] =
          lse;
  }

  __device__ __forceinline__ uint4 *resultRow(int row) const {
    unsigned short *to =
        item_.partialBegin >= 0
            ? static_cast<unsigned short *>(args_.partialOut) + partialOf(row) * Config::kValueDim
            : static_cast<unsigned short *>(args_.out) +
                  static_cast<long long>(rows_.callerIndex(row)) * args_.outStride +
                  rows_.headOf(row) * Config::kValueDim;
    return reinterpret_cast<uint4 *>(to);
  }

  const abi::AttendArgs &args_;
  char *shared_;
  const unsigned base_;
  const abi::Item item_;
  const int lane_, rowWarp_, sharer_;
  Rows rows_;
  unsigned query_[Split::kStepsHeld > 0 ? Split::kStepsHeld : 1][4];
  sm80::OnlineSoftmax softmax_;
  Fragment<2 * Split::kPairsOfWarp> out_{};
};

} // namespace deft::sm80_latent
