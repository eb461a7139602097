#pragma once

#include "deft/ptx/block.cuh"
#include "deft/sm90/tile_slot.cuh"

namespace deft::sm90 {

/// What the blocks of a launch share among them: each item for each KV head. An item's heads follow each
/// other, so that what lies together in memory is read together; or a head's items do, which asks less of L2
/// where they read much of the same.
template <class Config> class Units {
public:
  __device__ __forceinline__ explicit Units(const abi::AttendArgs &args) : args_(args) {}

  /// The block's unit behind this one.
  static __device__ __forceinline__ int next(int unit) { return unit + ptx::blocksReadHere(); }
  __device__ __forceinline__ int count() const { return args_.itemCount * Config::kKvHeads; }
  /// The item's place among the launch's.
  __device__ __forceinline__ int item(int unit) const {
    return areByHead() ? unit % args_.itemCount : unit / Config::kKvHeads;
  }
  __device__ __forceinline__ int kvHead(int unit) const {
    return areByHead() ? unit / args_.itemCount : unit % Config::kKvHeads;
  }
  /// Whether no unit follows one of no tokens: items of none are the last ones, of each head's.
  __device__ __forceinline__ bool isEmptyOneLast() const { return !areByHead(); }

private:
  __device__ __forceinline__ bool areByHead() const { return kReadsDealt<Config> && args_.byHead; }

  const abi::AttendArgs &args_;
};

} // namespace deft::sm90
