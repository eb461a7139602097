#pragma once

#include "deft/common/union_rows.cuh"
#include "deft/select/path_places.cuh"
#include "deft/sm90/attend.cuh"

/// Attention to the tokens of unions (abi::Unions), with the warps of dense attention. A unit is a separate
/// item. unite.cuh has written its number of tokens and their begin in the lists; as its page table, the
/// launch has the cache slots of these lists.
namespace deft::sm90 {

/// A bit next to the queries that read a token; with masks there is one query less.
constexpr unsigned kRead = 1u << (abi::kMostUnited - 1);

template <class Config>
  requires kReadsUnions<Config>
class Units<Config> {
public:
  __device__ __forceinline__ explicit Units(const abi::AttendArgs &args) : args_(args) {}

  static __device__ __forceinline__ int next(int unit) { return unit + ptx::blocksReadHere(); }
  __device__ __forceinline__ int count() const { return args_.itemCount; }
  __device__ __forceinline__ int item(int unit) const { return unit; }
  __device__ __forceinline__ int kvHead(int unit) const { return unit % Config::kKvHeads; }
  __device__ __forceinline__ bool isEmptyOneLast() const { return false; }

private:
  const abi::AttendArgs &args_;
};

/// An item's part of a union's tokens, instead of runs.
template <class Config, class Variant>
  requires kReadsUnions<Config>
class DealtRuns<Config, Variant> {
  static constexpr bool kNeedsDepth = WarpRows<Config, Variant>::kNeedsToken;

public:
  struct Window {};

  __device__ __forceinline__ DealtRuns(const abi::Run *unions, const abi::Item &item, Window &, int lane)
      : unions_(*reinterpret_cast<const abi::Unions *>(unions)), queryBegin_(item.queryBegin),
        tokens_(item.tokens), begin_(item.commonTokens), lane_(lane) {}

  /// Finds a lane's two tokens of a tile, 32 apart. Places after the last token repeat it, without readers.
  __device__ __forceinline__ bool find(int tile, Token (&token)[2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = tile * Config::kTileKv + half * 32 + lane_;
      const bool isThere = at < tokens_ && begin_ != abi::kNoTokens;
      token[half].place = begin_ == abi::kNoTokens ? 0 : begin_ + min(at, tokens_ - 1);
      const unsigned readers = isThere ? unions_.readers[token[half].place] : 0u;
      token[half].visible = Variant::kHasMask ? readers | kRead : readers;
      if constexpr (kNeedsDepth) {
        token[half].position = isThere ? unions_.positions[token[half].place] : 0;
        token[half].depth = 0;
        if (isThere) { // it is on the path of each of its readers
          const int query = queryBegin_ + __ffs(static_cast<int>(readers)) - 1;
          const abi::Selected &selected = reinterpret_cast<const abi::Selected *>(&unions_)[-1];
          token[half].depth =
              select::PathPlaces<Config>(selected, unions_.callerIndex[query]).depthOf(token[half].position);
        }
      }
    }
    return false;
  }

private:
  const abi::Unions &unions_;
  const int queryBegin_, tokens_, begin_, lane_;
};

/// The queries that read a token; no readers differs from a tile that a mask hides (kNobody).
template <class Variant> __device__ __forceinline__ unsigned readersOf(const Token &token) {
  if constexpr (Variant::kHasMask)
    return token.visible >= kRead ? token.visible - kRead : 0u;
  else
    return token.visible;
}

/// The interval from the first set bit up to bit `end`.
__device__ __forceinline__ unsigned intervalOf(unsigned bits, int end) {
  return bits == 0u
             ? kNobody
             : static_cast<unsigned>(__ffs(static_cast<int>(bits)) - 1) | static_cast<unsigned>(end) << 16;
}

/// As for tokens of runs. It writes an interval that contains all readers of the tile, and one of readers
/// that read all of it. If these do not suffice, computing warps check each token.
template <class Config, class Variant>
  requires kReadsUnions<Config>
__device__ __forceinline__ void writeTileFacts(TileSlot &slot, const Token (&token)[2],
                                               const TokenBounds &bounds, bool isGathered, bool, int lane) {
  unsigned readers[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int index = half * 32 + lane;
    slot.visible[index] = readers[half] = readersOf<Variant>(token[half]);
    if constexpr (kHasPositions<Config, Variant>) {
      slot.position[index] = token[half].position;
      slot.depth[index] = token[half].depth;
    }
  }
  const unsigned any = __reduce_or_sync(~0u, readers[0] | readers[1]);
  const unsigned all = __reduce_and_sync(~0u, readers[0] & readers[1]);
  const unsigned behind = ~(all | (all - 1u)); // after the first run of set bits
  const Viewed viewed{intervalOf(any, 32 - __clz(static_cast<int>(any))),
                      intervalOf(all, behind == 0u ? 32 : __ffs(static_cast<int>(behind)) - 1)};
  if (lane < TileFacts::kGroups)
    slot.facts.group[lane] = viewed;
  if (lane == 0) {
    slot.facts.head = {viewed, TileFacts::Head::kOther, isGathered};
    if constexpr (Variant::kHasMask)
      slot.facts.bounds = bounds;
  }
}

} // namespace deft::sm90
