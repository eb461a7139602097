#pragma once

#include "deft/common/union_rows.cuh"
#include "deft/select/path_places.cuh"
#include "deft/sm90/attend.cuh"

/// Attention to the tokens of unions (abi::Unions) by the copying and computing warps of dense attention. A
/// unit is an item of its own, into which unite.cuh has written how many tokens it has and where they begin
/// in the lists; the launch's page table is these lists' slots of the cache.
namespace deft::sm90 {

/// Beside the queries that read a token, of which there is one less where masks are.
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

/// An item's part of a union's tokens, in place of its runs.
template <class Config, class Variant>
  requires kReadsUnions<Config>
class DealtRuns<Config, Variant> {
  static constexpr bool kNeedsDepth = WarpRows<Config, Variant>::kNeedsToken;

public:
  struct Window {};

  __device__ __forceinline__ DealtRuns(const abi::Run *unions, const abi::Item &item, Window &, int lane)
      : unions_(*reinterpret_cast<const abi::Unions *>(unions)), queryBegin_(item.queryBegin),
        tokens_(item.tokens), begin_(item.commonTokens), lane_(lane) {}

  /// A lane's two tokens of a tile, 32 apart. Behind the last one it is that one again, and nobody reads it.
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
        if (isThere) { // on the path of any who reads it
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

/// The queries that have a token, kept apart from who reads nothing because a mask hides the tile (kNobody).
template <class Variant> __device__ __forceinline__ unsigned readersOf(const Token &token) {
  if constexpr (Variant::kHasMask)
    return token.visible >= kRead ? token.visible - kRead : 0u;
  else
    return token.visible;
}

/// The interval from the first of so many bits to before bit `end`.
__device__ __forceinline__ unsigned intervalOf(unsigned bits, int end) {
  return bits == 0u
             ? kNobody
             : static_cast<unsigned>(__ffs(static_cast<int>(bits)) - 1) | static_cast<unsigned>(end) << 16;
}

/// As for tokens of runs. Of who reads the tile it writes intervals that hold them, and some of those that
/// read all of it: computing warps ask each token where that does not say it.
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
  const unsigned behind = ~(all | (all - 1u)); // the first one's run of bits
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
