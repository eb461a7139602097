#pragma once

#include "deft/ptx/prefetch.cuh"
#include "deft/ptx/prefetch_bytes.cuh"
#include "deft/ptx/tensor_copy.cuh"
#include "deft/sm90_latent/copying_warp.cuh"

/// The copying warpgroup. Warp w fills part w % 2 of slot w / 2. Consecutive tokens are copied in bulk, the
/// others one by one.
namespace deft::sm90_latent {

template <class Config, class Variant> class Producer : public CopyingWarp<Config, Variant> {
  using Copying = CopyingWarp<Config, Variant>;
  using Copying::args_, Copying::ring_, Copying::lane_, Copying::warp_;
  using Copying::boundsOf, Copying::column, Copying::columnOf;
  using Copying::kHasPages, Copying::keepBounds, Copying::lookUpPages, Copying::placeOf;
  using Copying::rope, Copying::rowOfFour, Copying::writeFacts;
  using typename Copying::L;
  using typename Copying::Params;
  using typename Copying::Source;
  using typename Copying::Tile;
  static constexpr int kGroup = 16; ///< tokens in a bulk copy
  /// Whether a page (or the contiguous cache) can hold a whole group, or a whole tile, of consecutive tokens.
  /// Tokens of a list may lie anywhere.
  static constexpr bool kHasBulk = !kHasSlots<Config> && (!kHasPages || Config::kPageSize % kGroup == 0);
  static constexpr bool kHasTile = kHasBulk && (!kHasPages || Config::kPageSize % Config::kTileKv == 0);

public:
  /// Called by warps 0 to 2.
  static __device__ __forceinline__ void prefetchMaps(const abi::AttendArgs &args) {
    if (!kHasBulk || !args.hasMaps || !ptx::electOne())
      return;
#pragma unroll
    for (int box = 0; box < 3; box += 2) // boxes of 16 tokens, and of a tile
      if (threadIdx.x / 32 == box && (box == 0 || kHasTile)) {
        ptx::prefetch(args.kBoxes[box]);
        ptx::prefetch(args.vBoxes[box]);
      }
  }

  __device__ __forceinline__ Producer(const abi::AttendArgs &args, const Params &params,
                                      const Ring<Config> &ring)
      : Copying(args, params, ring) {}

  /// `first` is the block's first item.
  __device__ __forceinline__ void run(const abi::Item &first) const {
    const sm90::Units<Config> units(args_);
    int step = 0, number = 0;
    abi::Item item = first;
    for (int unit = blockIdx.x; unit < units.count(); unit = units.next(unit), ++number) {
      if (number > 0)
        item = Copying::itemOf(args_, unit);
      const int tiles = tilesOf<Config>(item), heads = units.kvHead(unit);
      if (tiles == 0)
        break; // items without tiles come last
      Copying::copyQueries(item, heads, number, step + tiles);
      copyTiles(item, heads, step, step + tiles);
      step += tiles;
    }
    Copying::tellEnd(number, step);
  }

private:
  __device__ __forceinline__ int slot() const { return warp_ / 2; }
  __device__ __forceinline__ Part part() const { return static_cast<Part>(warp_ % 2); }
  /// The first of V's blocks that the warp copies: in the half of warpgroup 0 or of warpgroup 1.
  __device__ __forceinline__ int firstBlock() const { return (slot() + warp_) % 2 * L::kHalfBlocks; }

  /// Copies the warp's part of the tiles in steps [begin, end) that belong to its slot.
  __device__ __forceinline__ void copyTiles(const abi::Item &item, int heads, int begin, int end) const {
    typename Copying::Tokens tokens(args_, item, lane_);
    __shared__ TileBounds bounds[Copying::kWarps]; // of the unit's rows; registers are too few for them
    keepBounds(item, heads, bounds[warp_]);
    for (int step = begin + (begin + slot()) % kSlots<Config>; step < end; step += kSlots<Config>) {
      Tile tile; // found while the slot is still in use
      Copying::find(item, tokens, step - begin, tile);
      lookUpPages(tile);
      const bool isHidden = Copying::isHidden(tile, boundsOf(tile), bounds[warp_]);
      if (isHidden)
        Copying::hide(tile);
      else if constexpr (kHasSlots<Config>) {
        if (step >= kSlots<Config>) // the copies wait for a slot
          prefetch(tile);
      }
      const unsigned before = Ring<Config>::parity(step) ^ 1;
      if (step >= kSlots<Config>)
        ptx::mbarrierWait(ring_.empty(step, part()), before);
      const Source low = sourceOf(tile, 0), high = sourceOf(tile, 1); // not earlier, to save registers
      if (!isHidden)
        copy(low, high, step);
      if (part() == kOther)
        writeFacts(tile, (low.bulk & high.bulk & 3) != 3, step, before);
      ptx::mbarrierArriveAfterCopies(ring_.full(step, part()));
    }
  }

  /// Prefetches a list's tokens to L2 while their slot is still in use: half of them, and the warp of the
  /// slot's other part the other half. They lie anywhere in the cache, so each is a load from memory.
  __device__ __forceinline__ void prefetch(const Tile &tile) const {
    const Source source = part() == kOwn ? placeOf(tile, 0) : placeOf(tile, 1);
    const auto at = [&](const void *tensor, const abi::CachePlaces &cache) {
      return atPlace<Config, typename Config::Key>(static_cast<const char *>(tensor),
                                                   tokenPlace<Config>(cache, 0, source.page, source.inPage));
    };
    ptx::prefetchBytes(at(args_.k, args_.kCache), Config::kValueDim * sizeof(typename Config::Key));
    ptx::prefetch(at(args_.v, args_.vCache));
  }

  static __device__ __forceinline__ bool isNext(int inPage, int page, int inPageBefore, int pageBefore) {
    if constexpr (!kHasPages)
      return page == pageBefore + 1;
    return page == pageBefore && inPage == inPageBefore + 1;
  }

  __device__ __forceinline__ Source sourceOf(const Tile &tile, int half) const {
    Source source = placeOf(tile, half);
    if constexpr (kHasBulk) {
      // Lanes whose token directly follows the previous lane's in memory. Neighbours on the path may not: a
      // request may have the same page at two consecutive places.
      const int inPage = kHasPages ? source.inPage : source.page;
      const unsigned follows = __ballot_sync(~0u, isNext(inPage, source.page, __shfl_up_sync(~0u, inPage, 1),
                                                         __shfl_up_sync(~0u, source.page, 1)));
      if (args_.hasMaps)
        source.bulk = ((follows & 0xfffe) == 0xfffe ? 1 : 0) |
                      ((follows & 0xfffe0000) == 0xfffe0000 ? 2 : 0) |
                      (kHasTile && (follows | 1) == ~0u ? 4 : 0);
    }
    return source;
  }

  /// Whether the tile's tokens are consecutive in memory.
  static __device__ __forceinline__ bool isWhole(const Source &low, const Source &high) {
    return (low.bulk & high.bulk & 4) != 0 && high.page == low.page + (kHasPages ? 0 : 32) &&
           high.inPage == low.inPage + (kHasPages ? 32 : 0);
  }

  __device__ __forceinline__ void copy(const Source &low, const Source &high, int step) const {
    if (kHasTile && isWhole(low, high)) {
      copyTile(low.at(0), step);
    } else {
      copyHalf(low, 0, step);
      copyHalf(high, 1, step);
    }
  }

  __device__ __forceinline__ unsigned blocks(int step) const {
    return ring_.tile(step) + firstBlock() * kBlockBytes;
  }

  __device__ __forceinline__ void copyTile(const Source &source, int step) const {
    if (!ptx::electOne())
      return;
    const unsigned full = ring_.full(step, part());
    const bool hasRope = part() == kOther;
    ptx::mbarrierExpectBytes(full, (L::kHalfBlocks + (hasRope ? 1 : 0)) * kBlockBytes);
    const auto copyBlocks = [&](unsigned to, const abi::TensorMap &map, int block) {
      if constexpr (kHasPages)
        ptx::tensorCopy(to, map, full, 0, source.inPage, block, 0, source.page);
      else
        ptx::tensorCopy(to, map, full, 0, source.page, block, 0);
    };
    copyBlocks(blocks(step), args_.kBoxes[2], firstBlock());
    if (hasRope)
      copyBlocks(rope(step), args_.vBoxes[2], 0);
  }

  __device__ __forceinline__ void copyHalf(const Source &source, int half, int step) const {
    if constexpr (kHasBulk) {
#pragma unroll
      for (int group = 0; group < 2; ++group)
        if (source.bulk >> group & 1)
          copyBoxes(half * 32 + group * kGroup, source.at(group * kGroup), step);
    }
    if ((source.bulk & 3) != 3)
      copyTokens(source, half, step);
  }

  /// Copies 16 tokens by the copy engine. All lanes call it with the same arguments.
  __device__ __forceinline__ void copyBoxes(int firstRow, const Source &source, int step) const {
    if (!ptx::electOne())
      return;
    const unsigned full = ring_.full(step, part());
    const bool hasRope = part() == kOther;
    ptx::mbarrierExpectBytes(full, (L::kHalfBlocks + (hasRope ? 1 : 0)) * kGroup * 128);
    const auto copyBox = [&](unsigned to, const abi::TensorMap &map, int column) {
      if constexpr (kHasPages)
        ptx::tensorCopy(to + firstRow * 128, map, full, column, 0, source.inPage, source.page);
      else
        ptx::tensorCopy(to + firstRow * 128, map, full, column, 0, source.page);
    };
#pragma unroll
    for (int block = 0; block < L::kHalfBlocks; ++block)
      copyBox(blocks(step) + block * kBlockBytes, args_.kBoxes[0], (firstBlock() + block) * 64);
    if (hasRope)
      copyBox(rope(step), args_.vBoxes[0], 0);
  }

  /// Copies the groups of the half that the copy engine does not. Each lane passes the place of its token to
  /// the lanes that copy it.
  __device__ __forceinline__ void copyTokens(const Source &source, int half, int step) const {
    const unsigned own = tokenPlace<Config>(args_.kCache, 0, source.page, source.inPage);
    const char *from = columnOf(args_.k) + firstBlock() * 128;
    forEachFour(source, [&](int token) {
      Copying::template copyRow<L::kHalfBlocks>(
          blocks(step), half * 32 + token,
          atPlace<Config, typename Config::Key>(from, __shfl_sync(~0u, own, token + rowOfFour())));
    });
    if (part() == kOther) {
      const unsigned ownRope = tokenPlace<Config>(args_.vCache, 0, source.page, source.inPage);
      const char *ropeColumn = columnOf(args_.v);
      forEachFour(source, [&](int token) {
        Copying::template copyRow<1>(rope(step), half * 32 + token,
                                     atPlace<Config, typename Config::Key>(
                                         ropeColumn, __shfl_sync(~0u, ownRope, token + rowOfFour())));
      });
    }
  }

  /// Calls `copy` for the first of each four tokens that are copied one by one.
  template <class Copy>
  static __device__ __forceinline__ void forEachFour(const Source &source, Copy &&copy) {
#pragma unroll 1
    for (int group = 0; group < 2; ++group) {
      if (source.bulk >> group & 1)
        continue;
#pragma unroll 1
      for (int token = 0; token < kGroup; token += 4)
        copy(group * kGroup + token);
    }
  }
};

} // namespace deft::sm90_latent
