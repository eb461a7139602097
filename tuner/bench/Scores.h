#pragma once

#include <span>
#include <string>
#include <vector>

namespace deft::bench {

/// A row's times and the times to compare them with, in microseconds; 0: unknown.
struct RowScore {
  std::string name;
  double coldUs = 0;
  double warmUs = 0;
  double floorUs = 0;         ///< measured in the same run
  double recordedFloorUs = 0; ///< of the same card, scaled to this machine
  double peerUs = 0;          ///< of the same card, scaled to this machine
  double rawPeerUs = 0;       ///< as recorded on the same card
  double scatteredUs = 0;
  double scatteredLimit = 0; ///< the largest allowed ratio for scattered pages
  double pages16Us = 0;      ///< scattered pages of 16 tokens, if the row's own pages are smaller
  double bestUs = 0;         ///< of an exploration
};

/// The rows above a limit, and the worst one.
struct Worst {
  int rows = 0; ///< that have this figure
  double mean = 0, worst = 0;
  std::string worstName;
  std::vector<std::string> beyond; ///< rows beyond the limit
};

struct Summary {
  Worst overFloor;         ///< ratio to floorUs, limit 1.7
  Worst overRecordedFloor; ///< the same for recordedFloorUs
  Worst overLargeFloor;    ///< for rows whose floor exceeds 75 us, limit 1.25
  Worst overPeer;          ///< our time over the peer's, limit 1: `beyond` are the losses
  Worst overRawPeer;       ///< the same, unscaled
  Worst scattered;         ///< over contiguous, each row's own limit
  Worst pages16;           ///< the same for pages of 16, limit 1.1
  Worst warm;              ///< over cold, no limit
  Worst overBest;          ///< over the exploration's best, limit 1.15
};

constexpr double kFloorLimit = 1.7;
constexpr double kLargeFloorUs = 75, kLargeFloorLimit = 1.25;
constexpr double kScatteredTokensLimit = 1.3, kScatteredPagesLimit = 1.1;
constexpr double kUntunedLimit = 1.15;

Summary summarize(std::span<const RowScore> rows);

} // namespace deft::bench
