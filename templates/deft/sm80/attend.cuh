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
#include "deft/ptx/ldmatrix.cuh"
#include "deft/ptx/mma_sync.cuh"
#include "deft/sm80/byte_tiles.cuh"
#include "deft/sm80/fitted_queries.cuh"
#include "deft/sm80/selected_cursor.cuh"
#include "deft/sm80/shared_layout.cuh"
#include "deft/sm80/softmax.cuh"
#include "deft/sm80/token_slot.cuh"

/// Attention of an item's rows to its runs, by mma.sync and a ring of KV tiles that cp.async fills. A block
/// works on one unit, an item for one KV head. Its warps divide the rows by 16. With more warps than that,
/// they also divide the tokens of a tile.
///
/// One step of the ring: wait for tile t; start the copies of tile t + stages - 1, whose token records the
/// previous step wrote; start the records of tile t + stages; compute tile t.
namespace deft::sm80 {

template <class Config, class Variant> class Attend {
  using Layout = SharedLayout<Config>;
  using KeyRows = typename Layout::KeyRows;
  using ValueRows = typename Layout::ValueRows;
  using QueryRows = typename Layout::QueryRows;
  using Query = typename Config::Query;
  using Key = typename Config::Key;
  using Value = typename Config::Value;
  using Output = typename Config::Output;
  using Params = typename Variant::Params;
  using Cursor = typename CursorOf<Config, Variant>::Type;

  static constexpr int kThreads = 32 * Config::kWarps;
  static constexpr int kRowWarps = Config::kTileQ / 16;
  static constexpr int kTokenWarps = Config::kWarps / kRowWarps;
  static constexpr int kGroups = Config::kTileKv / 16 / kTokenWarps; ///< groups of 16 tokens for each warp
  static constexpr int kSteps = (Config::kKeyDim + 15) / 16;         ///< k-steps of q.k
  static constexpr int kUnitsOfHead = UnitsOf<Config>::kOfHead;      ///< KV head
  static constexpr int kUnitsOfItem = Config::kKvHeads * kUnitsOfHead;
  static constexpr int kColumnTiles = Config::kValueDim / 8;  ///< of p.v, each of 8 columns
  static constexpr int kColumnPairs = Config::kValueDim / 16; ///< pairs of these
  /// The last step has only 8 dims: the other half of its operands is 0, whatever follows the row.
  static constexpr bool kHasTail = Config::kKeyDim % 16 != 0;

  static constexpr int kColumnElements = 16 / static_cast<int>(sizeof(Query)); ///< in the 16 bytes of a copy
  static constexpr bool kConverts = kIsConverted<Key>; ///< keys and values, from 8 bits to f16
  /// A sigmoid's weights may be far below 1, where f16 has bits down to 2^-24; factors of V may be large.
  static constexpr float kWeightUnit =
      Variant::kSigmoid && kConverts && !HasValueFactor<Variant> ? 32768.f : 1.f;

  static_assert(Config::kTileQ % 16 == 0 && Config::kRatio <= Config::kTileQ, "a query's rows fit the tile");
  static_assert(Config::kWarps % kRowWarps == 0, "warps split the rows evenly");
  static_assert(Config::kTileKv % (16 * kTokenWarps) == 0, "warps split the tokens evenly");
  static_assert(Config::kTileKv <= kThreads, "one thread a token record");
  static_assert(Config::kStages >= 2 && Config::kKeyDim % 8 == 0 && Config::kValueDim % 8 == 0);
  static_assert(!kConverts || (Config::kKeyDim % 16 == 0 && Config::kValueDim % 16 == 0),
                "16 bytes a column");
  static_assert(sizeof(Key) == sizeof(Value), "a copy has as many elements of both");
  static_assert(kConverts == kIsConverted<Value>);

public:
  static __device__ __forceinline__ void run(const abi::AttendArgs &args, const Params &params) {
    char *shared = ptx::dynamicShared<128>();
    const int units = args.itemCount * kUnitsOfItem;
    askForPlan(args, threadIdx.x, kThreads);
    if constexpr (kIsSparse<Config>)
      ptx::allowDependents();
    for (int unit = blockIdx.x; unit < units; unit += gridDim.x) {
      const abi::Item item = args.items[args.itemBegin + unit / kUnitsOfItem];
      if (item.tokens == 0)
        break;
      Attend attend(args, params, shared, item, unit % kUnitsOfItem);
      attend.walk();
      attend.join();
      // The next unit overwrites the ring. The last one waits as well: a check for it needs a register that
      // head dim 192 does not have on sm_100.
      __syncthreads();
    }
    // Blocks without a unit wait as well: later kernels rely on the end of the queries' maker.
    WarpRows<Config, Variant>::awaitQueries();
  }

private:
  /// The item, with fewer tokens if its list is shorter.
  static __device__ __forceinline__ decltype(auto) itemFor(const abi::Item &item, const abi::AttendArgs &args,
                                                           int unit) {
    if constexpr (kIsSparse<Config>)
      return ListPart<Config>::cut(item, args, unit);
    else
      return (item);
  }

  __device__ __forceinline__ Attend(const abi::AttendArgs &args, const Params &params, char *shared,
                                    const abi::Item &item, int unit)
      : args_(args), shared_(shared), base_(ptx::sharedAddress(shared)), item_(itemFor(item, args, unit)),
        unit_(unit), kvHead_(unit / kUnitsOfHead), lane_(threadIdx.x % 32),
        rowWarp_(threadIdx.x / 32 % kRowWarps), tokenWarp_(threadIdx.x / 32 / kRowWarps),
        rows_(args, params, item_, kvHead_, rowWarp_ * 16), softmax_(WarpRows<Config, Variant>::kUnit) {}

  // --- queries ---------------------------------------------------------------------------------

  __device__ __forceinline__ void loadQueries() {
    if constexpr (Layout::kQueryInRegisters) {
      if constexpr (kConverts)
        fitted_.load(rows_, lane_, query_);
      else
        rows_.loadQueries(query_);
    } else {
      constexpr int kColumns = QueryRows::kColumns;
      rows_.awaitQueries();
      for (int i = threadIdx.x; i < Config::kTileQ * kColumns; i += kThreads) {
        const int row = i / kColumns, column = i % kColumns;
        ptx::cpAsync16(base_ + Layout::kQueryOffset + QueryRows::offset(row, column),
                       rows_.queryRow(rows_.clamped(row)) + column * kColumnElements);
      }
    }
  }

  __device__ __forceinline__ void queryFragment(int k, unsigned (&a)[4]) const {
    if constexpr (Layout::kQueryInRegisters) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[i] = query_[k][i];
    } else {
      const int row = rowWarp_ * 16 + lane_ % 16;
      const bool isTail = kHasTail && k + 1 == kSteps;
      ptx::ldmatrix4(a, base_ + Layout::kQueryOffset +
                            QueryRows::offset(row, isTail ? 2 * k : 2 * k + lane_ / 16));
      if (isTail)
        a[2] = a[3] = 0u;
    }
  }

  // --- the ring --------------------------------------------------------------------------------

  __device__ __forceinline__ TokenSlot<Config> tokenSlot(int tile) const {
    return TokenSlot<Config>(shared_, tile % Layout::kTokenSlots);
  }

  __device__ __forceinline__ unsigned keysOf(int tile) const {
    return base_ + tile % Config::kStages * Layout::kKeyTileBytes;
  }
  /// The distance from a tile's keys to its values: a constant if both have the same rows.
  static __device__ __forceinline__ unsigned valueShift(int tile) {
    return Layout::kValueOffset + tile % Config::kStages * (Layout::kValueTileBytes - Layout::kKeyTileBytes);
  }

  __device__ __forceinline__ void store(const Cursor &cursor, const TokenSlot<Config> &slot) const {
    slot.place[threadIdx.x] =
        make_uint2(cursor.place(args_.kCache, kvHead_), cursor.place(args_.vCache, kvHead_));
    cursor.record(slot.records, threadIdx.x);
    if constexpr (TokenArrays<Config>::kCount > 0) { // in the group of copies that is committed next
      const unsigned elements = ptx::sharedAddress(slot.records.elements + threadIdx.x);
      Variant::forEachElement(rows_.params(), cursor.slot(), kvHead_, [&](int i, const void *element) {
        ptx::cpAsync4(elements + i * Config::kTileKv * 4, element);
      });
    }
  }

  __device__ __forceinline__ void startCopies(int tile) const {
    const TokenSlot<Config> slot = tokenSlot(tile);
    const unsigned keys = keysOf(tile);
    const char *k = static_cast<const char *>(args_.k), *v = static_cast<const char *>(args_.v);
    constexpr int kKeyColumns = KeyRows::kColumns, kValueColumns = ValueRows::kColumns;
    constexpr int kColumns = kKeyColumns > kValueColumns ? kKeyColumns : kValueColumns;
    constexpr int kPieces = Config::kTileKv * kColumns;
    constexpr int kEach = (kPieces + kThreads - 1) / kThreads;
    // With many accumulated columns, the addresses of all copies at once would need more registers than
    // sm_100 has.
    constexpr int kAtOnce = Config::kKeyDim > 128 ? (kEach + 1) / 2 : kEach;
#pragma unroll kAtOnce
    for (int i = 0; i < kEach; ++i) {
      const int piece = i * kThreads + threadIdx.x;
      if (kPieces % kThreads == 0 || piece < kPieces) {
        const int token = piece / kColumns, column = piece % kColumns;
        const uint2 place = slot.place[token];
        if (kKeyColumns == kColumns || column < kKeyColumns)
          ptx::cpAsync16(keys + KeyRows::offset(token, column),
                         atPlace<Config, Key>(k + column * 16, place.x));
        if (kValueColumns == kColumns || column < kValueColumns)
          ptx::cpAsync16(keys + ValueRows::offset(token, column) + valueShift(tile),
                         atPlace<Config, Value>(v + column * 16, place.y));
      }
    }
  }

  __device__ __forceinline__ Cursor cursorAt(int token) const {
    if constexpr (kIsSparse<Config>)
      return Cursor(args_, item_, token, unit_);
    else
      return Cursor(args_, item_, token);
  }

  __device__ __forceinline__ void walk() {
    const int tiles = (item_.tokens + Config::kTileKv - 1) / Config::kTileKv;
    const bool recorder = threadIdx.x < Config::kTileKv;
    Cursor cursor = cursorAt(threadIdx.x % Config::kTileKv);
    if (recorder) {
      for (int tile = 0; tile < Config::kStages && tile < tiles; ++tile) {
        cursor.fetch(args_);
        store(cursor, tokenSlot(tile));
      }
    }
    if constexpr (!Layout::kQueryInRegisters && kConverts)
      FittedQueries<Query>::template store<Config>(rows_, shared_);
    __syncthreads();
    if constexpr (!Layout::kQueryInRegisters && kConverts)
      fitted_.template takeUnits<Config>(rows_, shared_);
    else if constexpr (!Layout::kQueryInRegisters)
      loadQueries(); // part of the first group
#pragma unroll
    for (int tile = 0; tile < Config::kStages - 1; ++tile) {
      if (tile < tiles)
        startCopies(tile);
      ptx::cpAsyncCommit();
    }
    if constexpr (Layout::kQueryInRegisters)
      loadQueries();
    rows_.loadQueryFacts(); // overlaps the copies
    const Worth<Config, Variant> worth(args_, rows_);

    for (int tile = 0; tile < tiles; ++tile) {
      ptx::cpAsyncWait<Config::kStages - 2>();
      __syncthreads();
      if (tile + Config::kStages - 1 < tiles)
        startCopies(tile + Config::kStages - 1);
      ptx::cpAsyncCommit();
      const bool records = recorder && tile + Config::kStages < tiles;
      if (records)
        cursor.fetch(args_);
      if constexpr (HasKey<Variant>)
        makeKeys(tile);
      computeTile(tile, worth);
      if (records)
        store(cursor, tokenSlot(tile + Config::kStages));
    }
    if constexpr (!Variant::kSigmoid)
      softmax_.finish();
  }

  // --- one tile --------------------------------------------------------------------------------

  __device__ __forceinline__ void makeKeys(int tile) const {
    KeyHook<Config, Variant, KeyRows, kThreads, Config::kTileKv>::apply(
        rows_.params(), shared_ + (keysOf(tile) - base_), tokenSlot(tile).records, kvHead_, 0);
    __syncthreads();
  }

  __device__ __forceinline__ void computeTile(int tile, const Worth<Config, Variant> &worth) {
    const TokenRecords tokens = tokenSlot(tile).records;
    const unsigned keys = keysOf(tile), values = keys + valueShift(tile);

    Fragment<2 * kGroups> s;
    bool seen[kGroups];
    bool anySeen = false;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const int group = tokenWarp_ * kGroups + g;
      const auto state = rows_.visibility(tokens, group);
      seen[g] = state != rows_.kHidden;
      anySeen = anySeen || seen[g];
      Fragment<2> &scores = s.template part<2>(2 * g);
      scores.forEach([&](float &x, int, int) { x = seen[g] ? 0.f : -kInfinity; });
      if (!seen[g])
        continue;
      multiplyKeys(keys, group, scores);
      rows_.template score<1>(tokens, group, scores);
      if (state == rows_.kCut)
        rows_.hide(tokens, group, scores);
      worth.template give<false>(rows_, tokens, group, scores, {}, false);
    }
    if (!anySeen)
      return;

    if constexpr (Variant::kSigmoid) {
      s.forEach([](float &x, int, int) { x = sigmoidWeight(x) * kWeightUnit; });
    } else {
      float rescale[2];
      softmax_.step(s, rescale);
      out_.scaleRows(rescale);
    }
#pragma unroll
    for (int g = 0; g < kGroups; ++g)
      if (seen[g]) {
        rows_.multiplyByFactors(tokens, tokenWarp_ * kGroups + g, s.template part<2>(2 * g));
        multiplyValues(values, tokenWarp_ * kGroups + g, s.template part<2>(2 * g));
      }
  }

  /// s += q . k for 16 tokens: one ldmatrix per k-step gives two n8 tiles.
  __device__ __forceinline__ void multiplyKeys(unsigned keys, int group, Fragment<2> &s) const {
    if constexpr (kConverts) {
      multiplyBytes(keys, group, s);
    } else {
      const int token = group * 16 + lane_ % 8 + lane_ / 16 * 8;
#pragma unroll
      for (int k = 0; k < kSteps; ++k) {
        unsigned a[4], b[4];
        queryFragment(k, a);
        const bool isTail = kHasTail && k + 1 == kSteps;
        ptx::ldmatrix4(b, keys + KeyRows::offset(token, isTail ? 2 * k : 2 * k + lane_ / 8 % 2));
        if (isTail)
          b[1] = b[3] = 0u;
        ptx::mma16816<Key>(s.tile[0], a, b[0], b[1]);
        ptx::mma16816<Key>(s.tile[1], a, b[2], b[3]);
      }
    }
  }

  /// s += q . k for 8-bit keys: one ldmatrix gives two k-steps.
  __device__ __forceinline__ void multiplyBytes(unsigned keys, int group, Fragment<2> &s) const {
#pragma unroll
    for (int k = 0; k < kSteps; k += 2) {
      unsigned b[2][2][2];
      loadKeys<Key, KeyRows, kSteps>(keys, group * 16, k, lane_, b);
#pragma unroll
      for (int step = 0; step < 2 && k + step < kSteps; ++step) {
        unsigned a[4];
        queryFragment(k + step, a);
        ptx::mma16816<f16>(s.tile[0], a, b[step][0][0], b[step][0][1]);
        ptx::mma16816<f16>(s.tile[1], a, b[step][1][0], b[step][1][1]);
      }
    }
    fitted_.restore(s);
  }

  /// out += p . v for 16 tokens.
  __device__ __forceinline__ void multiplyValues(unsigned values, int group, const Fragment<2> &weights) {
    unsigned p[4];
    packOperand<Factor<Value>>(weights, p);
    if constexpr (kConverts) {
      multiplyBytes(values, group, p);
    } else {
      const int token = group * 16 + lane_ % 16;
#pragma unroll
      for (int pair = 0; pair < kColumnPairs; ++pair) {
        unsigned b[4];
        ptx::ldmatrix4Transposed(b, values + ValueRows::offset(token, 2 * pair + lane_ / 16));
        ptx::mma16816<Value>(out_.tile[2 * pair], p, b[0], b[1]);
        ptx::mma16816<Value>(out_.tile[2 * pair + 1], p, b[2], b[3]);
      }
      if constexpr (kColumnTiles % 2 != 0) {
        unsigned b[4];
        ptx::ldmatrix4Transposed(b, values + ValueRows::offset(token, kColumnTiles - 1));
        ptx::mma16816<Value>(out_.tile[kColumnTiles - 1], p, b[0], b[1]);
      }
    }
  }

  /// p . v for 8-bit values: separate sums of even and of odd columns.
  __device__ __forceinline__ void multiplyBytes(unsigned values, int group, const unsigned (&p)[4]) {
#pragma unroll
    for (int pair = 0; pair < kColumnPairs; pair += 2) {
      unsigned b[2][2][2];
      loadValues<Value, ValueRows, kColumnPairs>(values, group * 16, pair, lane_, b);
#pragma unroll
      for (int i = 0; i < 2 && pair + i < kColumnPairs; ++i) {
        ptx::mma16816<f16>(out_.tile[2 * (pair + i)], p, b[i][0][0], b[i][0][1]);
        ptx::mma16816<f16>(out_.tile[2 * (pair + i) + 1], p, b[i][1][0], b[i][1][1]);
      }
    }
  }

  // --- the end of a unit -----------------------------------------------------------------------

  /// Joins the warps that divided the tokens, normalises, and writes the output or a partial result. All
  /// results pass through shared memory, even if nothing is joined, to make the stores 8 or 16 bytes wide.
  __device__ __forceinline__ void join() {
    __syncthreads(); // the ring is free
    float *accumulators = reinterpret_cast<float *>(shared_);
    float *facts = accumulators + Config::kWarps * 16 * Layout::kJoinStride;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = tokenWarp_ * Config::kTileQ + rows_.row(r);
      if constexpr (kConverts) { // for even and odd columns
#pragma unroll
        for (int pair = 0; pair < kColumnPairs; ++pair) {
          const float (&even)[4] = out_.tile[2 * pair], (&odd)[4] = out_.tile[2 * pair + 1];
          *reinterpret_cast<float4 *>(accumulators + row * Layout::kJoinStride + pair * 16 +
                                      2 * fragmentColumn(lane_)) =
              make_float4(even[2 * r], odd[2 * r], even[2 * r + 1], odd[2 * r + 1]);
        }
      } else {
#pragma unroll
        for (int n = 0; n < kColumnTiles; ++n)
          *reinterpret_cast<float2 *>(accumulators + row * Layout::kJoinStride + n * 8 +
                                      fragmentColumn(lane_)) =
              make_float2(out_.tile[n][2 * r], out_.tile[n][2 * r + 1]);
      }
      if (isFirstOfRow(lane_)) {
        facts[2 * row] = softmax_.maximum[r];
        facts[2 * row + 1] = softmax_.sum[r];
      }
    }
    __syncthreads();

    constexpr int kPieces = Config::kValueDim / 4;
    const int rows = item_.queryCount * Config::kRatio;
    for (int i = threadIdx.x; i < rows * kPieces; i += kThreads) {
      const int row = i / kPieces, column = i % kPieces * 4;
      if (kUnitsOfHead > 1 && row != unit_ % kUnitsOfHead) // other units have the lists of the other rows
        continue;
      float weight[kTokenWarps];
      float lse = 0.f;
      if constexpr (Variant::kSigmoid) {
#pragma unroll
        for (int w = 0; w < kTokenWarps; ++w)
          weight[w] = 1.f / kWeightUnit;
      } else {
        lse = joinWeights(facts, row, weight);
      }
      float4 total = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
      for (int w = 0; w < kTokenWarps; ++w) {
        const float4 part = *reinterpret_cast<const float4 *>(
            accumulators + (w * Config::kTileQ + row) * Layout::kJoinStride + column);
        total.x += weight[w] * part.x;
        total.y += weight[w] * part.y;
        total.z += weight[w] * part.z;
        total.w += weight[w] * part.w;
      }
      write(row, column, total, lse);
    }
  }

  /// Computes each warp's factor in the row's normalised result; returns the natural log-sum-exp.
  __device__ __forceinline__ float joinWeights(const float *facts, int row,
                                               float (&weight)[kTokenWarps]) const {
    float top = -kInfinity;
#pragma unroll
    for (int w = 0; w < kTokenWarps; ++w)
      top = fmaxf(top, facts[2 * (w * Config::kTileQ + row)]);
    const float shift = top == -kInfinity ? 0.f : top * WarpRows<Config, Variant>::kUnit;
    float sum = 0.f;
#pragma unroll
    for (int w = 0; w < kTokenWarps; ++w) {
      weight[w] = ptx::exp2Fast(
          fmaf(facts[2 * (w * Config::kTileQ + row)], WarpRows<Config, Variant>::kUnit, -shift));
      sum += weight[w] * facts[2 * (w * Config::kTileQ + row) + 1];
    }
    float inverse = sum > 0.f ? 1.f / sum : 0.f;
    float lse = (shift + ptx::log2Fast(sum)) * kLn2; // without a key: 0 + -inf
    if constexpr (HasSink<Variant>) {
      if (item_.partialBegin < 0) {
        const SunkRow whole = rows_.withSink(row, lse);
        inverse *= whole.share;
        lse = whole.lse;
      }
    }
#pragma unroll
    for (int w = 0; w < kTokenWarps; ++w)
      weight[w] *= inverse;
    return lse;
  }

  __device__ __forceinline__ void write(int row, int column, const float4 &sum, float lse) const {
    float4 value = sum;
    if (item_.partialBegin < 0) {
      if constexpr (HasOutput<Variant>)
        value = rows_.finished(row).template elements<Variant>(rows_.params(), sum, column);
      const long long query = rows_.callerIndex(row);
      const int head = rows_.headOf(row);
      *reinterpret_cast<uint2 *>(static_cast<Output *>(args_.out) + query * args_.outStride +
                                 head * Config::kValueDim + column) =
          make_uint2(ptx::pack2<Output>(value.x, value.y), ptx::pack2<Output>(value.z, value.w));
      if (Config::kWithLse && column == 0 && args_.lse != nullptr)
        args_.lse[query * Config::kQueryHeads + head] = lse;
    } else {
      const long long place =
          static_cast<long long>(item_.partialBegin + row / Config::kRatio) * Config::kQueryHeads +
          rows_.headOf(row);
      using P = Partial<Config>;
      *reinterpret_cast<uint2 *>(static_cast<P *>(args_.partialOut) + place * Config::kValueDim + column) =
          make_uint2(ptx::pack2<P>(value.x, value.y), ptx::pack2<P>(value.z, value.w));
      if (column == 0)
        args_.partialLse[place] = lse;
    }
  }

  const abi::AttendArgs &args_;
  char *shared_;
  const unsigned base_;
  const abi::Item item_;
  const int unit_, kvHead_, lane_, rowWarp_, tokenWarp_;
  WarpRows<Config, Variant> rows_;
  unsigned query_[Layout::kQueryInRegisters ? kSteps : 1][4];
  FittedQueries<Query> fitted_;
  OnlineSoftmax softmax_;
  Fragment<kColumnTiles> out_{};
};

} // namespace deft::sm80
