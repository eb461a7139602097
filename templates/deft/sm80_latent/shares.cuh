#pragma once

/// The work of each warp in a block. Warps of the same 16 rows share the dims of q.k, where each computes a
/// part of all products, and the columns of p.v. Both are dealt in turn, 16 at a time. So a warp has the same
/// columns in every 128-byte line of a row, and their places are constants.
namespace deft::sm80_latent {

template <class Config> struct Shares {
  static constexpr int kRowWarps = Config::kTileQ / 16;
  static constexpr int kSharers = Config::kWarps / kRowWarps; ///< warps of the same rows
  static constexpr int kSteps = Config::kKeyDim / 16;         ///< of q.k
  static constexpr int kPairs = Config::kValueDim / 16;       ///< of n8 tiles of p.v
  static constexpr int kStepsOfWarp = (kSteps + kSharers - 1) / kSharers;
  static constexpr int kPairsOfWarp = (kPairs + kSharers - 1) / kSharers;

  /// Registers of a thread that scores, addresses and facts of rows do not need: the sums use some, queries
  /// the rest.
  static constexpr int kRegisters = (Config::kWarps <= 8 ? 256 : 2048 / Config::kWarps) - 108;
  static constexpr int kRoomOfQueries = kRegisters - 8 * kPairsOfWarp;
  /// The queries of a warp's first kStepsHeld steps are in registers, the others in shared memory.
  static constexpr int kStepsHeld = kRoomOfQueries < 0                  ? 0
                                    : kRoomOfQueries / 4 < kStepsOfWarp ? kRoomOfQueries / 4
                                                                        : kStepsOfWarp;
  /// Dims of a row of q that are in registers; those after them are in shared memory.
  static constexpr int kDimsHeld =
      kStepsHeld * kSharers * 16 < Config::kKeyDim ? kStepsHeld * kSharers * 16 : Config::kKeyDim;

  static_assert(Config::kTileQ % 16 == 0 && Config::kRatio <= Config::kTileQ, "a query's rows fit the tile");
  static_assert(Config::kWarps % kRowWarps == 0, "warps split the rows evenly");
  static_assert(Config::kKeyDim % 16 == 0 && Config::kValueDim % 16 == 0);
  static_assert(Config::kValueDim < Config::kKeyDim, "behind the latent columns come others");
};

} // namespace deft::sm80_latent
