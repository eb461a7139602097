#pragma once

#include "deft/ptx/convert.cuh"
#include "deft/ptx/fp8.cuh"
#include "deft/sm90/layout.cuh"

namespace deft::sm90 {

/// How a warp turns bytes, as ByteCopy has left them, into rows of tiles. Columns of 16 bits are written
/// without conflicts: of a block's 64, eight lanes write every other one for two tokens.
template <class Config> class ByteConversion {
  using L = Layout<Config>;
  using Pieces = BytePieces<Config::kKeyDim>; // and kValueDim
  using Factor = typename Config::Key;

public:
  __device__ __forceinline__ explicit ByteConversion(int lane)
      : from_(lane * 16), column_(lane % Pieces::kLow),
        to_(L::offset(lane / Pieces::kLow, 2 * (lane % Pieces::kLow))) {}

  /// `kTimes` pieces a lane, to rows of a tile from one that the swizzle begins anew with.
  template <class Element, int kTimes = Pieces::kTimes>
  __device__ __forceinline__ void convert(const char *bytes, char *rows) const {
    // A lane's tokens lie a swizzle's rows or two apart, so that its columns do by numbers known here.
    static_assert(Pieces::kTokens % 8 == 0);
    constexpr int kAtOnce = kTimes % 4 == 0 ? 4 : kTimes % 2 == 0 ? 2 : 1;
    const char *from = bytes + from_;
    char *to = rows + to_, *toNext = rows + (to_ ^ 16);
#pragma unroll
    for (int first = 0; first < kTimes; first += kAtOnce) {
      uint4 pieces[kAtOnce]; // all of them first: what is written may be what is read, for all the compiler
                             // knows
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        pieces[i] = *reinterpret_cast<const uint4 *>(from + (first + i) * 512);
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int across = (first + i) % Pieces::kAcross;
        const int at = across * L::kBlockBytes + (first + i) / Pieces::kAcross * Pieces::kTokens * 128;
        if (isThere(across)) {
          put<Element>(to + at, pieces[i].x, pieces[i].y);
          put<Element>(toNext + at, pieces[i].z, pieces[i].w);
        }
      }
    }
  }

private:
  __device__ __forceinline__ bool isThere(int across) const {
    return Pieces::kColumns % Pieces::kLow == 0 || across * Pieces::kLow + column_ < Pieces::kColumns;
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

  const int from_, column_;
  const unsigned to_; ///< in a tile, of the lane's first column
};

} // namespace deft::sm90
