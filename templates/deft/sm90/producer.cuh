#pragma once

#include "deft/ptx/cp_async.cuh"
#include "deft/ptx/mbarrier.cuh"
#include "deft/sm90/layout.cuh"
#include "deft/token_cursor.cuh"

/// The warpgroup that copies: it walks the block's units ahead of the consumers and keeps the ring full.
namespace deft::sm90 {

template <class Config>
__device__ __forceinline__ void produce(const abi::AttendArgs &args, const Ring<Config> &ring) {
  using Element = typename Config::Element;
  using L = Layout<Config>;
  constexpr int kPerWarp = Config::kTileKv / 4; ///< tokens of a tile
  static_assert(kPerWarp <= 32 && 32 % kPerWarp == 0);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Element *k = static_cast<const Element *>(args.k), *v = static_cast<const Element *>(args.v);
  const int units = args.itemCount * Config::kKvHeads;
  int step = 0;
  for (int unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const abi::Item item = args.items[args.itemBegin + unit / Config::kKvHeads];
    const int tiles = (item.tokens + Config::kTileKv - 1) / Config::kTileKv;
    TokenCursor<Config> cursor(args, item, unit % Config::kKvHeads, warp * kPerWarp + lane % kPerWarp);
    for (int tile = 0; tile < tiles; ++tile, ++step) {
      // Each lane finds one token before the wait, and passes its place on to the lanes that copy it.
      cursor.fetch(args);
      const long long offset = cursor.offset(args);
      if (step >= Config::kStages)
        ptx::mbarrierWait(ring.empty(step), (step / Config::kStages - 1) & 1);
      if (lane < kPerWarp)
        cursor.record(ring.records(step), warp * kPerWarp + lane);
      const unsigned keys = ring.keys(step);
      constexpr int kPieces = kPerWarp * L::kColumns;
#pragma unroll
      for (int i = 0; i < (kPieces + 31) / 32; ++i) {
        const int piece = i * 32 + lane, token = piece / L::kColumns, column = piece % L::kColumns;
        const long long from = __shfl_sync(~0u, offset, token) + column * 8;
        if (kPieces % 32 == 0 || piece < kPieces) {
          const unsigned to = keys + L::offset(warp * kPerWarp + token, column);
          ptx::cpAsync16(to, k + from);
          ptx::cpAsync16(to + L::kValueOffset, v + from);
        }
      }
      ptx::mbarrierArriveAfterCopies(ring.full(step));
    }
  }
}

} // namespace deft::sm90
