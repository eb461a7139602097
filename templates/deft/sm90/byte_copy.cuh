#pragma once

#include "deft/common/row_place.cuh"
#include "deft/ptx/cp_async.cuh"
#include "deft/sm90/layout.cuh"

namespace deft::sm90 {

/// How a copying warp copies bytes of an 8-bit cache, which it stores in the order of its lanes' requests.
template <class Config> class ByteCopy {
  using Pieces = BytePieces<Config::kKeyDim>; // and kValueDim

public:
  __device__ __forceinline__ explicit ByteCopy(int lane)
      : lane_(lane), column_(lane % Pieces::kLow), token_(lane / Pieces::kLow) {}

  /// Copies half a tile to a shared address, keys before values; each lane has the places of one token.
  __device__ __forceinline__ void start(const abi::AttendArgs &args, unsigned to, unsigned keyPlace,
                                        unsigned valuePlace) const {
    start<typename Config::StoredKey>(to + lane_ * 16, args.k, keyPlace);
    start<typename Config::StoredValue>(to + lane_ * 16 + Pieces::kBytes, args.v, valuePlace);
  }

private:
  template <class Element>
  __device__ __forceinline__ void start(unsigned to, const void *tensor, unsigned own) const {
    const char *column = static_cast<const char *>(tensor) + column_ * 16;
    constexpr int kRounds = 32 / Pieces::kTokens, kAtOnce = kRounds < 4 ? kRounds : 4;
#pragma unroll 1
    for (int first = 0; first < kRounds; first += kAtOnce) {
      unsigned places[kAtOnce]; // all first: otherwise a copy would wait for each
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        places[i] = __shfl_sync(~0u, own, (first + i) * Pieces::kTokens + token_);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const char *from = atPlace<Config, Element>(column, places[i]);
#pragma unroll
        for (int across = 0; across < Pieces::kAcross; ++across)
          if (isThere(across))
            ptx::cpAsync16(to + ((first + i) * Pieces::kAcross + across) * 512,
                           from + across * Pieces::kLow * 16);
      }
    }
  }

  __device__ __forceinline__ bool isThere(int across) const {
    return Pieces::kColumns % Pieces::kLow == 0 || across * Pieces::kLow + column_ < Pieces::kColumns;
  }

  const int lane_, column_, token_;
};

} // namespace deft::sm90
