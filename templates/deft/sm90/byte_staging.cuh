#pragma once

#include "deft/any_family/row_place.cuh"
#include "deft/ptx/convert.cuh"
#include "deft/ptx/cp_async.cuh"
#include "deft/ptx/fp8.cuh"
#include "deft/sm90/layout.cuh"

namespace deft::sm90 {

/// Where a copying warp's bytes wait, and how they become tiles. A lane converts just what it has copied, so
/// that nobody waits for others; bytes lie in the order in which lanes ask for them, and columns of 16 bits
/// are written without conflicts: of a block's 64, eight lanes write every other one for two tokens.
template <class Config> class ByteStaging {
  using L = Layout<Config>;
  static constexpr int kDim = Config::kKeyDim; // and kValueDim
  using Pieces = BytePieces<kDim>;
  using Factor = typename Config::Query;
  static constexpr int kHalves = 2 / L::kTeam; ///< of a tile, that a warp has
  static constexpr int kSlotBytes = kHalves * 2 * Pieces::kBytes;

public:
  __device__ __forceinline__ ByteStaging(const Ring<Config> &ring, int warp, int lane)
      : ring_(ring), staging_(L::kStagingOffset + warp * kStagingSlots * kSlotBytes + lane * 16),
        column_(lane % Pieces::kLow), token_(lane / Pieces::kLow),
        to_(L::offset(lane / Pieces::kLow, 2 * (lane % Pieces::kLow))) {}

  /// Asks for half a tile, whose tokens' places each lane has one of. A warp takes its two slots in turn.
  __device__ __forceinline__ void start(const abi::AttendArgs &args, int slot, int half, unsigned keyPlace,
                                        unsigned valuePlace) const {
    const unsigned to = ring_.base + placeOf(slot, half);
    start<typename Config::StoredKey>(to, args.k, keyPlace);
    start<typename Config::StoredValue>(to + Pieces::kBytes, args.v, valuePlace);
  }

  /// Of what has come, into the stage.
  __device__ __forceinline__ void convert(int slot, int half, int step) const {
    const char *from = ring_.shared + placeOf(slot, half);
    convert<typename Config::StoredKey>(from, ring_.keys(step) - ring_.base, half);
    convert<typename Config::StoredValue>(from + Pieces::kBytes, ring_.values(step) - ring_.base, half);
  }

private:
  __device__ __forceinline__ unsigned placeOf(int slot, int half) const {
    return staging_ + slot * kSlotBytes + (kHalves == 2 ? half * 2 * Pieces::kBytes : 0);
  }
  __device__ __forceinline__ bool isThere(int across) const {
    return Pieces::kColumns % Pieces::kLow == 0 || across * Pieces::kLow + column_ < Pieces::kColumns;
  }

  template <class Element>
  __device__ __forceinline__ void start(unsigned to, const void *tensor, unsigned own) const {
    const char *column = static_cast<const char *>(tensor) + column_ * 16;
    constexpr int kRounds = 32 / Pieces::kTokens, kAtOnce = kRounds < 4 ? kRounds : 4;
#pragma unroll 1
    for (int first = 0; first < kRounds; first += kAtOnce) {
      unsigned places[kAtOnce]; // all of them first: a copy would wait for each
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

  template <class Element>
  __device__ __forceinline__ void convert(const char *from, unsigned tile, int half) const {
    // A lane's tokens lie a swizzle's rows or two apart, so that its columns do by numbers known here.
    static_assert(Pieces::kTokens % 8 == 0);
    constexpr int kAtOnce = Pieces::kTimes % 4 == 0 ? 4 : 2;
    char *to = ring_.shared + tile + to_ + half * 32 * 128;
    char *toNext = ring_.shared + tile + (to_ ^ 16) + half * 32 * 128;
#pragma unroll
    for (int first = 0; first < Pieces::kTimes; first += kAtOnce) {
      uint4 bytes[kAtOnce]; // all of them first: what is written may be what is read, for all the compiler
                            // knows
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        bytes[i] = *reinterpret_cast<const uint4 *>(from + (first + i) * 512);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int across = (first + i) % Pieces::kAcross;
        const int at = across * L::kBlockBytes + (first + i) / Pieces::kAcross * Pieces::kTokens * 128;
        if (isThere(across)) {
          put<Element>(to + at, bytes[i].x, bytes[i].y);
          put<Element>(toNext + at, bytes[i].z, bytes[i].w);
        }
      }
    }
  }

  /// Eight elements.
  template <class Element> static __device__ __forceinline__ void put(char *to, unsigned low, unsigned high) {
    unsigned first[2], second[2];
    ptx::toHalves<Element>(low, first);
    ptx::toHalves<Element>(high, second);
    *reinterpret_cast<uint4 *>(to) =
        make_uint4(factors(first[0]), factors(first[1]), factors(second[0]), factors(second[1]));
  }
  static __device__ __forceinline__ unsigned factors(unsigned halves) {
    if constexpr (kIsSame<Factor, f16>) {
      return halves;
    } else { // which has fewer bits, but more than the bytes had
      const float2 both = ptx::unpack2<f16>(halves);
      return ptx::pack2<Factor>(both.x, both.y);
    }
  }

  const Ring<Config> &ring_;
  const unsigned staging_; ///< from the block's shared memory on, of the lane
  const int column_, token_;
  const unsigned to_; ///< in a tile, of the lane's first column
};

} // namespace deft::sm90
