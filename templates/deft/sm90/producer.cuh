#pragma once

#include "deft/ptx/cp_async.cuh"
#include "deft/ptx/mbarrier.cuh"
#include "deft/sm90/layout.cuh"
#include "deft/token_cursor.cuh"

/// The warpgroup that copies: it walks the block's units ahead of the consumers and keeps the ring full.
/// Two warps share a tile, the other two take the next one: finding a token is a chain of loads (item, run,
/// page), and two chains are under way at a time.
namespace deft::sm90 {

template <class Config> class Producer {
  using Element = typename Config::Element;
  using L = Layout<Config>;
  static constexpr int kPairs = 2;    ///< of warps
  static constexpr int kPerWarp = 32; ///< tokens of a tile
  static constexpr int kUnroll =
      8; ///< of the copies: more would hold more addresses than there are registers
  static_assert(Config::kTileKv == 2 * kPerWarp);

public:
  __device__ __forceinline__ Producer(const abi::AttendArgs &args, const Ring<Config> &ring)
      : args_(args), ring_(ring), lane_(threadIdx.x % 32), pair_(threadIdx.x / 64),
        firstToken_(threadIdx.x / 32 % 2 * kPerWarp) {}

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
  /// This pair's tiles of the steps [begin, end).
  __device__ __forceinline__ void copyUnit(const abi::Item &item, int kvHead, int begin, int end) const {
    int step = begin + ((begin ^ pair_) & 1);
    if (step >= end)
      return;
    TokenCursor<Config> cursor(args_, item, kvHead, (step - begin) * Config::kTileKv + firstToken_ + lane_,
                               kPairs * Config::kTileKv);
    cursor.fetch(args_);
    for (; step < end; step += kPairs) {
      const long long offset = cursor.offset(args_);
      if (step >= Config::kStages)
        ptx::mbarrierWait(ring_.empty(step), (step / Config::kStages - 1) & 1);
      cursor.record(ring_.records(step), firstToken_ + lane_);
      if (step + kPairs < end)
        cursor.fetch(args_); // the page arrives while the copies are issued
      copy(ring_.keys(step), offset);
      ptx::mbarrierArriveAfterCopies(ring_.full(step));
      __syncwarp();
      if (lane_ == 0)
        ptx::mbarrierArrive(ring_.full(step)); // for the warp's records, which are no asynchronous copies
    }
  }

  /// K and V of the warp's tokens; each lane passes the place of its token on to the lanes that copy it.
  __device__ __forceinline__ void copy(unsigned keys, long long offset) const {
    const Element *k = static_cast<const Element *>(args_.k), *v = static_cast<const Element *>(args_.v);
#pragma unroll kUnroll
    for (int i = 0; i < L::kColumns; ++i) {
      const int piece = i * 32 + lane_, token = piece / L::kColumns, column = piece % L::kColumns;
      const long long from = __shfl_sync(~0u, offset, token) + column * 8;
      const unsigned to = keys + L::offset(firstToken_ + token, column);
      ptx::cpAsync16(to, k + from);
      ptx::cpAsync16(to + L::kValueOffset, v + from);
    }
  }

  const abi::AttendArgs &args_;
  const Ring<Config> &ring_;
  const int lane_, pair_, firstToken_;
};

/// Arrivals that make a stage full: the copies of a pair's threads, and one for each of its warps' records.
constexpr int kFullArrivals = 64 + 2;

} // namespace deft::sm90
