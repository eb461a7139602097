#pragma once

#include "deft/ptx/cp_async.cuh"
#include "deft/ptx/tensor_copy.cuh"
#include "deft/sm90/layout.cuh"
#include "deft/sm90/run_window.cuh"

/// The warpgroup that copies: it walks the block's units ahead of the consumers and keeps the ring full.
/// Its warps take tiles in turn, because finding a tile's tokens is a chain of loads (item, runs, pages):
/// four chains are under way at a time. Tokens that lie one after the other come by bulk copies of 16, the
/// others one by one.
namespace deft::sm90 {

template <class Config, class Variant> class Producer {
  using Element = typename Config::Element;
  using L = Layout<Config>;
  static constexpr int kWarps = 4;
  static constexpr int kGroup = 16; ///< tokens of a bulk copy
  static constexpr int kGroups = TileFacts::kGroups;
  static constexpr bool kIsPaged = Config::kPageSize > 0;
  /// Whether a page (or the contiguous cache) has room for a group.
  static constexpr bool kHasBulk = Config::kPageSize <= 1 || Config::kPageSize % kGroup == 0;
  static constexpr bool kHasWide = Config::kPageSize <= 1 || Config::kPageSize % (2 * kGroup) == 0;
  static_assert(Config::kTileKv == 64, "a lane has two tokens");

public:
  __device__ __forceinline__ Producer(const abi::AttendArgs &args, const Ring<Config> &ring)
      : args_(args), ring_(ring), warp_(threadIdx.x / 32), lane_(threadIdx.x % 32) {}

  __device__ __forceinline__ void run() const {
    const int units = args_.itemCount * Config::kKvHeads;
    int step = 0; // of the unit's first tile
    for (int unit = blockIdx.x; unit < units; unit += gridDim.x) {
      const abi::Item item = args_.items[args_.itemBegin + unit / Config::kKvHeads];
      const int tiles = (item.tokens + Config::kTileKv - 1) / Config::kTileKv;
      if (tiles == 0)
        break;
      copyUnit(item, unit % Config::kKvHeads, step, step + tiles);
      step += tiles;
    }
  }

private:
  /// A lane's two tokens of a tile, 32 apart.
  struct Tile {
    Token token[2]; ///< where pages are single tokens, their place is the page
    int page[2];    ///< where they are not
  };

  /// This warp's tiles of the steps [begin, end): a stage has one warp that fills it, else a warp could take
  /// an older phase of the stage's barrier for the one it waits for.
  __device__ __forceinline__ void copyUnit(const abi::Item &item, int kvHead, int begin, int end) const {
    RunWindow runs(args_.runs + item.runBegin, item.runCount, lane_);
    for (int step = begin; step < end; ++step) {
      if (step % Config::kStages % kWarps != warp_)
        continue;
      const Tile tile = find(item, runs, step - begin); // while the consumers still have the stage
      if (step >= Config::kStages)
        ptx::mbarrierWait(ring_.empty(step), (step / Config::kStages - 1) & 1);
      copy(tile, kvHead, step);
    }
  }

  __device__ __forceinline__ Tile find(const abi::Item &item, RunWindow &runs, int index) const {
    Tile tile;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int first = index * Config::kTileKv + half * 32;
      tile.token[half] = runs.find(first, item.tokens - 1);
      if (first + lane_ >= item.tokens) // the last token is copied again, and nobody sees it
        tile.token[half].visible = kNobody;
      if constexpr (Config::kPageSize == 1)
        tile.token[half].place = args_.pageTable[tile.token[half].place];
      else if constexpr (kIsPaged)
        tile.page[half] = args_.pageTable[static_cast<unsigned>(tile.token[half].place) / Config::kPageSize];
    }
    return tile;
  }

  __device__ __forceinline__ void copy(const Tile &tile, int kvHead, int step) const {
    TileSlot &slot = ring_.slot(step);
    const unsigned keys = ring_.keys(step), full = ring_.full(step);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Token &token = tile.token[half];
      const int index = half * 32 + lane_;
      slot.visible[index] = token.visible;
      slot.position[index] = token.position;
      slot.depth[index] = token.depth;
      recordFacts(slot.facts, half, token);

      int page = token.place, inPage = 0;
      if constexpr (Config::kPageSize > 1) {
        page = tile.page[half];
        inPage = static_cast<int>(static_cast<unsigned>(token.place) % Config::kPageSize);
      }
      unsigned bulk = 0; // groups of this half
      if constexpr (kHasBulk) {
        const unsigned to = keys + half * 32 * 128;
        // Lanes whose token follows that of the lane before.
        const unsigned follows =
            __ballot_sync(~0u, isNext(token.place, page, __shfl_up_sync(~0u, token.place, 1),
                                      __shfl_up_sync(~0u, page, 1)));
        if (args_.hasMaps) {
          bulk = ((follows & 0xfffe) == 0xfffe ? 1 : 0) | ((follows & 0xfffe0000) == 0xfffe0000 ? 2 : 0);
          if (bulk == 3 && (follows >> kGroup & 1) != 0 && kHasWide) {
            if (lane_ == 0)
              copyBox<1>(to, full, kvHead, page, inPage);
          } else if (lane_ % kGroup == 0 && (bulk >> lane_ / kGroup & 1) != 0) {
            copyBox<0>(to + lane_ * 128, full, kvHead, page, inPage);
          }
        }
      }
      if (bulk != 3) {
        long long offset = kvHead * args_.cache.headStride + inPage * args_.cache.tokenStride;
        offset += page * (kIsPaged ? args_.cache.pageStride : args_.cache.tokenStride);
        copyTokens(keys, half, offset, bulk);
      }
    }
    ptx::mbarrierArriveAfterCopies(full);
    __syncwarp();
    if (lane_ == 0)
      ptx::mbarrierArrive(full); // for the slot, which is no asynchronous copy
  }

  static __device__ __forceinline__ bool isNext(int place, int page, int placeBefore, int pageBefore) {
    if constexpr (Config::kPageSize == 1)
      return page == pageBefore + 1;
    return place == placeBefore + 1 && (!kIsPaged || page == pageBefore);
  }

  /// K and V of 16 tokens, or of 32, by the copy engine.
  template <int kBox>
  __device__ __forceinline__ void copyBox(unsigned to, unsigned full, int kvHead, int page,
                                          int inPage) const {
    constexpr int kBlocks = L::kTileBytes / L::kBlockBytes;
    ptx::mbarrierExpectBytes(full, 2 * kBlocks * (kGroup << kBox) * 128);
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      const unsigned block = to + b * L::kBlockBytes;
      if constexpr (Config::kPageSize <= 1) {
        ptx::tensorCopy(block, args_.kBoxes[kBox], full, b * 64, kvHead, page);
        ptx::tensorCopy(block + L::kValueOffset, args_.vBoxes[kBox], full, b * 64, kvHead, page);
      } else {
        ptx::tensorCopy(block, args_.kBoxes[kBox], full, b * 64, kvHead, inPage, page);
        ptx::tensorCopy(block + L::kValueOffset, args_.vBoxes[kBox], full, b * 64, kvHead, inPage, page);
      }
    }
  }

  /// K and V of the half's groups that are not in `bulk`; each lane passes the place of its token on to the
  /// lanes that copy it.
  __device__ __forceinline__ void copyTokens(unsigned keys, int half, long long offset, unsigned bulk) const {
    const Element *k = static_cast<const Element *>(args_.k), *v = static_cast<const Element *>(args_.v);
    constexpr int kPieces = kGroup * L::kColumns;
#pragma unroll 1
    for (int group = 0; group < 2; ++group) {
      if (bulk >> group & 1)
        continue;
#pragma unroll 4 // more would hold more addresses than there are registers
      for (int i = 0; i < (kPieces + 31) / 32; ++i) {
        const int piece = i * 32 + lane_, token = group * kGroup + piece / L::kColumns;
        const int column = piece % L::kColumns;
        const long long from = __shfl_sync(~0u, offset, token) + column * 8;
        if (kPieces % 32 == 0 || piece < kPieces) {
          const unsigned to = keys + L::offset(half * 32 + token, column);
          ptx::cpAsync16(to, k + from);
          ptx::cpAsync16(to + L::kValueOffset, v + from);
        }
      }
    }
  }

  /// Of the two groups of 16 tokens of a half.
  __device__ __forceinline__ void recordFacts(TileFacts &facts, int half, const Token &token) const {
    const int group = half * 2 + lane_ / kGroup;
    unsigned hull = token.visible, common = token.visible;
    int lo = token.position, hi = lo, shallow = token.depth, deep = shallow;
    if (!__all_sync(~0u, token.visible == __shfl_sync(~0u, token.visible, 0))) {
#pragma unroll
      for (int distance = 1; distance < kGroup; distance *= 2) {
        hull = hullOf(hull, __shfl_xor_sync(~0u, hull, distance));
        common = commonOf(common, __shfl_xor_sync(~0u, common, distance));
      }
    }
    if constexpr (Variant::kHasMask) {
#pragma unroll
      for (int distance = 1; distance < kGroup; distance *= 2) {
        lo = min(lo, __shfl_xor_sync(~0u, lo, distance));
        hi = max(hi, __shfl_xor_sync(~0u, hi, distance));
        shallow = min(shallow, __shfl_xor_sync(~0u, shallow, distance));
        deep = max(deep, __shfl_xor_sync(~0u, deep, distance));
      }
    }
    if (lane_ % kGroup == 0) {
      facts.anyone[group] = hull;
      facts.everyone[group] = common;
      if constexpr (Variant::kHasMask) {
        facts.kvLo[group] = lo;
        facts.kvHi[group] = hi;
        facts.depthLo[group] = shallow;
        facts.depthHi[group] = deep;
      }
    }
  }

  // Intervals as first | end << 16.
  static __device__ __forceinline__ unsigned hullOf(unsigned a, unsigned b) {
    return min(a & 0xffff, b & 0xffff) | max(a >> 16, b >> 16) << 16;
  }
  static __device__ __forceinline__ unsigned commonOf(unsigned a, unsigned b) {
    return max(a & 0xffff, b & 0xffff) | min(a >> 16, b >> 16) << 16;
  }

  const abi::AttendArgs &args_;
  const Ring<Config> &ring_;
  const int warp_, lane_;
};

/// Arrivals that make a stage full: the copies of each thread of its warp, and one for the slot.
constexpr int kFullArrivals = 32 + 1;

} // namespace deft::sm90
