#pragma once

#include "deft/ptx/prefetch_bytes.cuh"
#include "deft/ptx/tensor_copy.cuh"
#include "deft/sm90_latent/byte_rows.cuh"
#include "deft/sm90_latent/copying_warp.cuh"

/// The warpgroup that copies a cache of bytes. In each tile, warp w fills part w % 2 for the tokens of half w
/// / 2. Part kOwn becomes free sooner, so its warps also fill the last block.
namespace deft::sm90_latent {

template <class Config, class Variant> class ByteProducer : public CopyingWarp<Config, Variant> {
  using Copying = CopyingWarp<Config, Variant>;
  using Rows = ByteRows<Config>;
  using Copying::args_, Copying::ring_, Copying::lane_, Copying::warp_;
  using typename Copying::L;
  using typename Copying::Params;
  using Source = ByteSource<Config>;
  using typename Copying::Tile;
  static constexpr bool kRopeIsCopied = kHasScales<Config>; ///< the rotated columns have q's type
  static constexpr int kRows = 32;                          ///< tokens in a half

public:
  static __device__ __forceinline__ void prefetchMaps(const abi::AttendArgs &) {}

  __device__ __forceinline__ ByteProducer(const abi::AttendArgs &args, const Params &params,
                                          const Ring<Config> &ring)
      : Copying(args, params, ring) {}

  /// `first` is the block's first item.
  __device__ __forceinline__ void run(const abi::Item &first) const {
    __shared__ Unit units[Copying::kWarps];
    Unit &unit = units[warp_];
    begin(unit, first, 0, 0);
    const sm90::Units<Config> all(args_);
    for (;;) {
      const int number = blockIdx.x + unit.number * ptx::blocksReadHere();
      if (number >= all.count())
        break;
      if (unit.number > 0)
        begin(unit, Copying::itemOf(args_, number), unit.number, unit.step);
      const int end = unit.step + tilesOf<Config>(unit.item);
      if (end == unit.step)
        break; // items without tiles come last
      Copying::copyQueries(unit.item, all.kvHead(number), unit.number, end);
      convertTiles(unit, all.kvHead(number));
      begin(unit, unit.item, unit.number + 1, unit.step + tilesOf<Config>(unit.item));
    }
    Copying::tellEnd(unit.number, unit.step);
  }

private:
  __device__ __forceinline__ Part part() const { return static_cast<Part>(warp_ % 2); }
  __device__ __forceinline__ int half() const { return warp_ / 2; }
  __device__ __forceinline__ bool hasRope() const { return part() == kOwn; }

  /// The warp's state for its unit, in shared memory because registers are short.
  struct alignas(16) Unit {
    abi::Item item;
    int number, step; ///< the block's earlier units, and the step of the first tile
  };
  __device__ __forceinline__ void begin(Unit &unit, const abi::Item &item, int number, int step) const {
    __syncwarp();
    if (lane_ == 0)
      unit = {item, number, step};
    __syncwarp();
  }

  /// The unit's tiles. Before the slot of a tile is free, the next tile is found and prefetched to L2. When a
  /// tile is done, the loads of the next tile's first tokens are in flight.
  __device__ __forceinline__ void convertTiles(const Unit &unit, int heads) const {
    typename Copying::Tokens tokens(args_, unit.item, lane_);
    __shared__ TileBounds bounds[Copying::kWarps];
    __shared__ Source sources[Copying::kWarps][2]; // for tiles of even and of odd steps
    Copying::keepBounds(unit.item, heads, bounds[warp_]);
    Rows rows(args_, lane_);
    bool isNextHidden = false;
    for (int index = -1; index < tilesOf<Config>(unit.item); ++index) {
      const bool isHidden = isNextHidden;
      int next = unit.step + index; // after the last tile the same one again, which avoids a second code path
      if (index + 1 < tilesOf<Config>(unit.item)) {
        ++next;
        isNextHidden = find(unit, tokens, index + 1, bounds[warp_], sources[warp_][next % 2]);
      }
      if (index < 0) {
        rows.load(sources[warp_][next % 2], columnOf(next), 0);
        if (!kRopeIsCopied && hasRope())
          rows.loadRope(sources[warp_][next % 2], 0);
      } else {
        convert(rows, isHidden, unit.step + index, next, sources[warp_]);
      }
    }
  }

  /// The first V column of the warp's part.
  __device__ __forceinline__ int columnOf(int step) const { return (step + warp_) % 2 * L::kHalfBlocks * 64; }

  /// Finds a tile of the unit, prefetches it to L2 and writes its facts. True if no query sees the tile.
  __device__ __forceinline__ bool find(const Unit &unit, typename Copying::Tokens &tokens, int index,
                                       const TileBounds &bounds, Source &to) const {
    const int step = unit.step + index;
    Tile tile;
    Copying::find(unit.item, tokens, index, tile);
    Copying::lookUpPages(tile);
    const TokenBounds seen = Copying::boundsOf(tile);
    const bool isHidden = Copying::isHidden(tile, seen, bounds);
    if (isHidden)
      Copying::hide(tile);
    if (warp_ == 0) // this warp has waited for the tile before the last one, so the slot is free
      writeTileFacts<Config, Variant>(ring_.slot(step), tile.token, seen, kRopeIsCopied, false, lane_);
    const auto place = half() == 0 ? Copying::placeOf(tile, 0) : Copying::placeOf(tile, 1);
    const unsigned row = tokenPlace<Config>(args_.kCache, 0, place.page, place.inPage);
    const unsigned rope = kRopeIsCopied ? row : tokenPlace<Config>(args_.vCache, 0, place.page, place.inPage);
    to.row[lane_] = row;
    if constexpr (!kRopeIsCopied)
      to.rope[lane_] = rope;
    __syncwarp();
    if (!isHidden)
      prefetch(row, rope, step);
    return isHidden;
  }

  /// Prefetches the warp's tokens to L2. If the rows are consecutive, one prefetch covers them for both
  /// parts.
  __device__ __forceinline__ void prefetch(unsigned row, unsigned rope, int step) const {
    constexpr unsigned kRowBytes = kRopeIsCopied ? ByteRow<Config>::kBytes : Config::kValueDim;
    const unsigned stride = args_.kCache.tokenStride, first = __shfl_sync(~0u, row, 0);
    const unsigned strideBytes = stride * (kRowUnit<Config> * static_cast<int>(sizeof(Stored<Config>)));
    const bool areOne =
        __all_sync(~0u, row == first + lane_ * stride) && strideBytes <= 2 * kRowBytes; // small gaps at most
    if (areOne) {
      if (hasRope() && ptx::electOne())
        ptx::prefetchBytes(Rows::rowAt(args_.k, first), (kRows - 1) * strideBytes + kRowBytes);
    } else {
      Rows::prefetch(Rows::rowAt(args_.k, row), columnOf(step));
    }
    if (hasRope() && !(areOne && kRopeIsCopied)) // it is stored apart from the row
      ptx::prefetch(Rows::rowAt(args_.v, rope));
  }

  /// The address of one of the warp's tokens in a tile's first block.
  __device__ __forceinline__ char *rowsOf(int step, int token) const {
    return ring_.shared + (ring_.tile(step) - ring_.base) + (half() * kRows + token) * 128;
  }

  /// Converts the warp's part of a tile. Registers hold its first tokens; at the end, those of step `next`.
  __device__ __forceinline__ void convert(Rows &rows, bool isHidden, int step, int next,
                                          const Source (&sources)[2]) const {
    const unsigned before = Ring<Config>::parity(step) ^ 1;
    if (step >= kSlots)
      ptx::mbarrierWait(ring_.empty(step, part()), before);
#pragma unroll 1
    for (int token = 0; token < kRows; token += Rows::kTokens) {
      const bool isLast = token + Rows::kTokens == kRows;
      const Source &source = sources[(isLast ? next : step) % 2];
      const int column = columnOf(isLast ? next : step), follows = isLast ? 0 : token + Rows::kTokens;
      char *const to = rowsOf(step, token);
      if constexpr (!kRopeIsCopied) { // the tokens before: loads for the next ones then start with the others
        if (hasRope() && token > 0)
          rows.convertRope(rowsOf(step, token - Rows::kTokens) + L::kRopeOffset, sources[step % 2], token);
      }
      if (isHidden)
        rows.load(source, column, follows);
      else
        rows.convert(to + columnOf(step) / 64 * kBlockBytes, source, column, follows);
      if (hasRope() && token == 0) { // by now the last block is probably free
        if (step >= kSlots)
          ptx::mbarrierWait(ring_.empty(step, kOther), before);
        if (warp_ == 0 && lane_ == 0)
          ptx::mbarrierArrive(ring_.full(step, kOther)); // for the facts
        if (kRopeIsCopied && !isHidden)
          copyRope(sources[step % 2], step);
      }
    }
    if constexpr (!kRopeIsCopied) {
      if (hasRope())
        rows.convertRope(rowsOf(step, kRows - Rows::kTokens) + L::kRopeOffset, sources[next % 2], 0);
    }
    ptx::fenceAsyncProxy(); // products read what the lane has written
    ptx::mbarrierArrive(ring_.full(step, part()));
    if (hasRope()) {
      if constexpr (kRopeIsCopied)
        ptx::mbarrierArriveAfterCopies(ring_.full(step, kOther));
      else
        ptx::mbarrierArrive(ring_.full(step, kOther));
    }
  }

  /// Copies the last block for the warp's tokens.
  __device__ __forceinline__ void copyRope(const Source &source, int step) const {
    const char *const from = Copying::columnOf(args_.v);
#pragma unroll 1
    for (int token = 0; token < kRows; token += 4)
      Copying::template copyRow<1>(
          Copying::rope(step), half() * kRows + token,
          atPlace<Config, Stored<Config>>(from, source.row[token + Copying::rowOfFour()]));
  }
};

} // namespace deft::sm90_latent
