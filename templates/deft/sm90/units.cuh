#pragma once

#include "deft/ptx/block.cuh"
#include "deft/sm90/tile_slot.cuh"

namespace deft::sm90 {

/// The units that the blocks of a launch share: each item for each KV head. Either an item's heads follow
/// each other, so that data that is adjacent in memory is read together. Or the items of a head follow each
/// other, which needs less L2 traffic if they read mostly the same tokens.
template <class Config> class Units {
public:
  __device__ __forceinline__ explicit Units(const abi::AttendArgs &args) : args_(args) {}

  /// The block's next unit after this one.
  static __device__ __forceinline__ int next(int unit) { return unit + ptx::blocksReadHere(); }
  __device__ __forceinline__ int count() const { return args_.itemCount * Config::kKvHeads; }
  /// The item's index in the launch.
  __device__ __forceinline__ int item(int unit) const {
    return areByHead() ? unit % args_.itemCount : unit / Config::kKvHeads;
  }
  __device__ __forceinline__ int kvHead(int unit) const {
    return areByHead() ? unit / args_.itemCount : unit % Config::kKvHeads;
  }
  /// Whether a unit without tokens is the last one: such items come last, but for every head.
  __device__ __forceinline__ bool isEmptyOneLast() const { return !areByHead(); }

private:
  __device__ __forceinline__ bool areByHead() const { return kReadsDealt<Config> && args_.byHead; }

  const abi::AttendArgs &args_;
};

} // namespace deft::sm90
