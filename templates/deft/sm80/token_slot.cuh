#pragma once

#include "deft/sm80/shared_layout.cuh"

namespace deft::sm80 {

/// A tile's tokens in shared memory: their places and their records.
template <class Config> struct TokenSlot {
  uint2 *place; ///< the places of the token's rows of K and V, for this KV head
  TokenRecords records;

  __device__ __forceinline__ TokenSlot(char *shared, int slot)
      : place(reinterpret_cast<uint2 *>(shared + SharedLayout<Config>::kTokenOffset) +
              slot * Config::kTileKv),
        records(shared + SharedLayout<Config>::kRecordOffset +
                    slot * Config::kTileKv * TokenBytes<Config>::kRecord,
                Config::kTileKv) {}
};

} // namespace deft::sm80
