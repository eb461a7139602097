#pragma once

#include "deft/ptx/convert.cuh"
#include "deft/ptx/fp8.cuh"
#include "deft/sm90/layout.cuh"

namespace deft::sm90 {

/// How a warp converts bytes to rows of tiles. The bytes lie in rows of a stage, or as ByteCopy stored them.
/// Writes of 16-bit columns have no bank conflicts: of a block's 64, eight lanes write every other column for
/// two tokens.
template <class Config, bool kInRows> class ByteConversion {
  using L = Layout<Config>;
  using Pieces = BytePieces<Config::kKeyDim>; // and kValueDim
  using Factor = typename Config::Key;
  static_assert(!kInRows || (Pieces::kLow == 4 && Pieces::kAcross == 2), "a row has 128 bytes at most");

public:
  __device__ __forceinline__ explicit ByteConversion(int lane)
      : from_(firstByte(lane)), column_(lane % Pieces::kLow), to_(firstElement(lane)) {}

  /// Where a lane's first piece is read (in the bytes) and written (in a tile).
  static __device__ __forceinline__ int firstByte(int lane) {
    return kInRows ? tokenOf(lane) * 128 + ((lane % 4) ^ tokenOf(lane)) * 16 : lane * 16;
  }
  static __device__ __forceinline__ unsigned firstElement(int lane) {
    return L::offset(tokenOf(lane), 2 * (lane % Pieces::kLow));
  }

  /// Converts `kTimes` pieces per lane to rows of a tile. The first row starts a period of the swizzle; that
  /// holds for `bytes` as well if these are rows.
  template <class Element, int kTimes = Pieces::kTimes>
  __device__ __forceinline__ void convert(const char *bytes, char *rows) const {
    // A lane's tokens are multiples of eight rows apart, so the distances of its columns are constants.
    static_assert(Pieces::kTokens % 8 == 0);
    constexpr int kAtOnce = kTimes % 4 == 0 ? 4 : kTimes % 2 == 0 ? 2 : 1;
    const char *from = bytes + from_, *fromNext = bytes + (from_ ^ 64); // the row's next four columns
    char *to = rows + to_, *toNext = rows + (to_ ^ 16);
#pragma unroll
    for (int first = 0; first < kTimes; first += kAtOnce) {
      uint4 pieces[kAtOnce]; // load all first: the compiler must assume that the writes may alias the
                             // reads
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int number = first + i;
        const char *piece = !kInRows          ? from + number * 512
                            : number % 2 == 0 ? from + number / 2 * Pieces::kTokens * 128
                                              : fromNext + number / 2 * Pieces::kTokens * 128;
        pieces[i] = *reinterpret_cast<const uint4 *>(piece);
      }
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
  /// A token of the first eight or more rows. Eight lanes have two tokens. If bytes are rows, the swizzle
  /// puts the two into different banks, for reads and for writes.
  static __device__ __forceinline__ int tokenOf(int lane) {
    return kInRows ? lane / 8 ^ lane / 4 % 2 * 5 : lane / Pieces::kLow;
  }

  __device__ __forceinline__ bool isThere(int across) const {
    return Pieces::kColumns % Pieces::kLow == 0 || across * Pieces::kLow + column_ < Pieces::kColumns;
  }

  /// Converts and writes eight elements.
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
    } else { // bf16 has fewer bits, but more than the bytes
      const float2 both = ptx::unpack2<f16>(halves);
      return ptx::pack2<Factor>(both.x, both.y);
    }
  }

  const int from_, column_;
  const unsigned to_; ///< of the lane's first column within a tile
};

} // namespace deft::sm90
