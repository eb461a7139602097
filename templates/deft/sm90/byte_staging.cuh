#pragma once

#include "deft/sm90/byte_conversion.cuh"
#include "deft/sm90/byte_copy.cuh"

namespace deft::sm90 {

/// Where a copying warp's bytes wait for conversion. A lane converts only the bytes that it copied, so it
/// waits for no other lane.
template <class Config> class ByteStaging {
  using L = Layout<Config>;
  static constexpr int kKeyBytes = BytePieces<Config::kKeyDim>::kBytes;
  static constexpr int kHalves = 2 / L::kTeam; ///< halves of a tile for one warp

public:
  __device__ __forceinline__ ByteStaging(const Ring<Config> &ring, int warp, int lane)
      : ring_(ring), staging_(L::kStagingOffset + warp * kStagingSlots * kHalves * L::kHalfTileBytes),
        copy_(lane), conversion_(lane) {}

  /// Starts to copy half a tile; each lane has the place of one token. A warp uses its two slots in turn.
  __device__ __forceinline__ void start(const abi::AttendArgs &args, int slot, int half, unsigned keyPlace,
                                        unsigned valuePlace) const {
    copy_.start(args, ring_.base + placeOf(slot, half), keyPlace, valuePlace);
  }

  /// Converts the arrived bytes into the stage.
  __device__ __forceinline__ void convert(int slot, int half, int step) const {
    const char *from = ring_.shared + placeOf(slot, half);
    char *keys = ring_.shared + (ring_.keys(step) - ring_.base) + half * 32 * 128;
    conversion_.template convert<typename Config::StoredKey>(from, keys);
    conversion_.template convert<typename Config::StoredValue>(from + kKeyBytes, keys + L::kValueOffset);
  }

private:
  __device__ __forceinline__ unsigned placeOf(int slot, int half) const {
    return staging_ + (slot * kHalves + (kHalves == 2 ? half : 0)) * L::kHalfTileBytes;
  }

  const Ring<Config> &ring_;
  const unsigned staging_; ///< the warp's offset in the block's shared memory
  const ByteCopy<Config> copy_;
  const ByteConversion<Config, /*kInRows=*/false> conversion_;
};

} // namespace deft::sm90
