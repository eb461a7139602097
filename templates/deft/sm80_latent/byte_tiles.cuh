#pragma once

#include "deft/common/latent_bytes.cuh"
#include "deft/common/row_place.cuh"
#include "deft/ptx/cp_async.cuh"
#include "deft/sm80_latent/given_lists.cuh"
#include "deft/sm80_latent/shared_layout.cuh"

/// Tiles of a cache of bytes. The ring holds rows in the memory's format. Before a tile is computed,
/// the block's threads convert it once into a tile of q's elements after the ring, which all rows then
/// use.
namespace deft::sm80_latent {

template <class Config> class ByteTiles {
  using Factor = typename Config::Key;
  using Layout = SharedLayout<Config>;
  using Rows = typename Layout::KeyRows::Rows;
  static constexpr int kThreads = 32 * Config::kWarps;
  static constexpr bool kIsScaled = kHasScales<Config>;
  static constexpr int kRowBytes = ByteRow<Config>::kBytes;
  /// Pieces of 16 bytes: in a row, and in the part before its rotated columns.
  static constexpr int kRowPieces = kRowBytes / 16, kLatentPieces = ByteRow<Config>::kLatent / 16;
  /// Pieces of 16 elements.
  static constexpr int kPieces = Config::kKeyDim / 16, kValuePieces = Config::kValueDim / 16;

public:
  /// Copies the rows to `tile`, a shared address.
  static __device__ __forceinline__ void startCopies(const abi::AttendArgs &args,
                                                     const TokenSlot<Config> &slot, unsigned tile) {
    const auto *const latent = static_cast<const char *>(args.k);
    const auto *const other = static_cast<const char *>(args.v) - kLatentPieces * 16;
#pragma unroll 1
    for (int i = threadIdx.x; i < Config::kTileKv * kRowPieces; i += kThreads) {
      const int token = i / kRowPieces, piece = i % kRowPieces;
      const uint2 place = slot.place[token];
      const bool isThere = !kListsAreGiven<Config> || place.x != kNowhere;
      const char *const row = piece < kLatentPieces
                                  ? atPlace<Config, Stored<Config>>(latent, isThere ? place.x : 0u)
                                  : atPlace<Config, Stored<Config>>(other, isThere ? place.y : 0u);
      if constexpr (kListsAreGiven<Config>) // a missing token of a list becomes 0, and so do its scales
        ptx::cpAsync16OrZero(tile + i * 16, row + piece * 16, isThere);
      else
        ptx::cpAsync16(tile + i * 16, row + piece * 16);
    }
  }

  static __device__ __forceinline__ void convert(const char *stored, char *tile) {
#pragma unroll 2
    for (int i = threadIdx.x; i < Config::kTileKv * kPieces; i += kThreads) {
      const int token = i / kPieces, piece = i % kPieces;
      const char *const row = stored + token * kRowBytes;
      // Four of eight threads write the odd columns first, so that all use different banks.
      const int odd = piece / 4 % 2;
      char *const first = tile + Rows::offset(token, 2 * piece + odd);
      char *const second = tile + Rows::offset(token, 2 * piece + 1 - odd);
      if (kIsScaled && piece >= kValuePieces) { // these have q's type already
        const char *const from = row + kLatentPieces * 16 + (piece - kValuePieces) * 32;
        *reinterpret_cast<uint4 *>(first) = *reinterpret_cast<const uint4 *>(from + odd * 16);
        *reinterpret_cast<uint4 *>(second) = *reinterpret_cast<const uint4 *>(from + 16 - odd * 16);
        continue;
      }
      float scale = 1.f;
      if constexpr (kIsScaled)
        scale = scaleOf<Config>(row, piece * 16);
      const uint4 bytes = *reinterpret_cast<const uint4 *>(row + piece * 16);
      *reinterpret_cast<uint4 *>(first) = factorsOf<Stored<Config>, Factor, kIsScaled>(
          odd ? bytes.z : bytes.x, odd ? bytes.w : bytes.y, scale);
      *reinterpret_cast<uint4 *>(second) = factorsOf<Stored<Config>, Factor, kIsScaled>(
          odd ? bytes.x : bytes.z, odd ? bytes.y : bytes.w, scale);
    }
  }
};

} // namespace deft::sm80_latent
