#pragma once

#include "deft/common/fragment.cuh"
#include "deft/ptx/convert.cuh"
#include "deft/sm90_latent/layout.cuh"

/// Blocks for few rows multiply the values of a cache of bytes as they are, in f16: converting an element
/// takes half an instruction instead of three. The queries become f16 as well, once a unit, except columns
/// whose keys have q's type. There are few scores and weights, so these are multiplied by the factors of
/// queries and the scales of tokens.
namespace deft::sm90_latent {

/// Prepares the columns of a unit's queries whose keys are bytes, in place. They become f16. Each row is
/// multiplied by a power of two, so that it fits. Columns take the order in which lanes have those of the
/// keys. All computing threads call it.
template <class Config> class FewQueries {
  using L = Layout<Config>;
  using Few = FewLayout<Config>;
  using Key = typename Config::Key;
  static constexpr int kThreads = 128 * kComputingGroups / Few::kRows; ///< of a row
  /// Of 16 bytes: in a row, and of a thread. The last ones of some threads are behind the row.
  static constexpr int kRowPieces = (kHasScales<Config> ? L::kValueBlocks : L::kBlocks) * 8;
  static constexpr int kPieces = (kRowPieces + kThreads - 1) / kThreads;
  static_assert(kThreads == 16);

public:
  static __device__ __forceinline__ void prepare(const Ring<Config> &ring, int thread) {
    const int row = thread / kThreads;
    char *const first = ring.shared + L::kQueryOffset + row * 128;
    uint4 pieces[kPieces];
#pragma unroll
    for (int i = 0; i < kPieces; ++i)
      pieces[i] = isInRow(thread, i) ? *reinterpret_cast<const uint4 *>(first + blockAt(thread, i) +
                                                                        L::swizzled(row, pieceOf(thread, i)))
                                     : make_uint4(0u, 0u, 0u, 0u);
    if constexpr (!kIsSame<Key, f16>)
      convert(ring, thread, pieces);
    __syncwarp(); // the row has been read
#pragma unroll
    for (int i = 0; i < kPieces; ++i)
      if (isInRow(thread, i)) {
        const unsigned words[4] = {pieces[i].x, pieces[i].y, pieces[i].z, pieces[i].w};
#pragma unroll
        for (int word = 0; word < 4; ++word) {
          const int to = wordAt(pieceOf(thread, i), word);
          *reinterpret_cast<unsigned *>(first + blockAt(thread, i) + L::swizzled(row, to / 4) + to % 4 * 4) =
              words[word];
        }
      }
  }

  /// The factor of a row's products.
  static __device__ __forceinline__ float factorOf(const Ring<Config> &ring, int row) {
    return kIsSame<Key, f16> ? 1.f : ring.template fewAt<float>(Few::kQueryFactorOffset)[row];
  }

private:
  /// The exponent of two of a row's largest element, afterwards. f16 ends below 16; what is 2^27 times
  /// smaller still has all bits of bf16.
  static constexpr int kLargest = 12;

  /// Converts the thread's pieces of a row.
  static __device__ __forceinline__ void convert(const Ring<Config> &ring, int thread,
                                                 uint4 (&pieces)[kPieces]) {
    unsigned largest = 0;
#pragma unroll
    for (const uint4 &piece : pieces)
      largest = max(largest, max(max(magnitude(piece.x), magnitude(piece.y)),
                                 max(magnitude(piece.z), magnitude(piece.w))));
#pragma unroll
    for (int lanes = 1; lanes < kThreads; lanes *= 2)
      largest = max(largest, __shfl_xor_sync(~0u, largest, lanes));
    const int exponent = max(static_cast<int>(largest >> 7), kLargest + 1); // both factors are normal
    const float factor = __uint_as_float(static_cast<unsigned>(2 * 127 + kLargest - exponent) << 23);
#pragma unroll
    for (uint4 &piece : pieces)
      piece = make_uint4(scaled(piece.x, factor), scaled(piece.y, factor), scaled(piece.z, factor),
                         scaled(piece.w, factor));
    if (thread % kThreads == 0)
      ring.template fewAt<float>(Few::kQueryFactorOffset)[thread / kThreads] =
          __uint_as_float(static_cast<unsigned>(exponent - kLargest) << 23);
  }

  static __device__ __forceinline__ bool isInRow(int thread, int i) {
    return kRowPieces % kThreads == 0 || thread % kThreads + i * kThreads < kRowPieces;
  }
  static __device__ __forceinline__ int blockAt(int thread, int i) {
    return (thread % kThreads + i * kThreads) / 8 * L::kQueryBlockBytes;
  }
  static __device__ __forceinline__ int pieceOf(int thread, int i) {
    return (thread % kThreads + i * kThreads) % 8;
  }
  /// Which word of a block's row gets a word of a piece. A lane has 16 neighbouring bytes of a key, four for
  /// each of four products. Of these four the first two are columns 2 j and 2 j + 1 of the product, for the
  /// lane's number j among four, and the others are 8 columns behind.
  static __device__ __forceinline__ constexpr int wordAt(int piece, int word) {
    const int lane = piece / 2, product = piece % 2 * 2 + word / 2;
    return product * 8 + word % 2 * 4 + lane;
  }
  /// The bits of the larger one of two elements of bf16, without its sign.
  static __device__ __forceinline__ unsigned magnitude(unsigned pair) {
    return max(pair & 0x7fffu, pair >> 16 & 0x7fffu);
  }
  static __device__ __forceinline__ unsigned scaled(unsigned pair, float factor) {
    const float2 both = ptx::unpack2<Key>(pair);
    return ptx::pack2<f16>(both.x * factor, both.y * factor);
  }
};

/// The scales of a warpgroup's tokens. Weights are multiplied by scales relative to a power of two above all
/// of them so far, the unit of the warpgroup's sums. Without scales it is 1.
template <class Config, int kScales = kFewScales<Config>> class FewScales {
public:
  /// Of one token.
  struct Token {
    float of[kScales];
  };
  static __device__ __forceinline__ Token tokenOf(const Ring<Config> &ring, int step, int token) {
    static_assert(kScales == 4 && Layout<Config>::kKeepsScales);
    const float4 all = *reinterpret_cast<const float4 *>(ring.shared + ring.scales(step) + token * 16);
    return {{all.x, all.y, all.z, all.w}};
  }

  /// Whether a scale is above the unit, in any lane. `largest`: of the lane.
  __device__ __forceinline__ bool hasToGrow(float largest) const { return __any_sync(~0u, largest > unit_); }
  /// Raises the unit above the largest scale. Returns the factor for the sums so far.
  __device__ __forceinline__ float grow(float largest) {
    if (largest <= unit_)
      return 1.f;
    const int exponent = min(static_cast<int>(__float_as_uint(largest) >> 23) + 2, kMostExponent);
    const float before = unit_;
    unit_ = __uint_as_float(static_cast<unsigned>(exponent) << 23);
    inverse_ = __uint_as_float(static_cast<unsigned>(2 * 127 - exponent) << 23);
    return before * inverse_;
  }

  /// A weight times a scale. A hidden token has any scale.
  __device__ __forceinline__ float scaled(float weight, float scale) const {
    return weight == 0.f ? 0.f : weight * (scale * inverse_);
  }
  __device__ __forceinline__ float unit() const { return unit_; }

private:
  static constexpr int kMostExponent = 253; ///< whose inverse is a normal number
  float unit_ = 0.f, inverse_ = 0.f;
};

template <class Config> class FewScales<Config, 0> {
public:
  struct Token {};
  __device__ __forceinline__ float unit() const { return 1.f; }
};

} // namespace deft::sm90_latent
