#pragma once

#include "compiler/config/Config.h"
#include "runtime/plan/Plan.h"

#include <vector>

/// The order of runs for kernels that halve an item's rows. In templates/deft/sm90/consumer.cuh an item of
/// more than 64 rows has two warpgroups, for 64 rows each. Both walk its tiles of 64 tokens in the same
/// order, pass over those that none of their queries sees, and cannot be farther apart than the ring of tiles
/// is long. In path order a stretch of leaves belongs to one half, the next to the other: one of them waits
/// all the time.
namespace deft::plan {

/// Orders the runs of such items: first what both halves see, in path order; then what one half alone sees
/// and what the other alone sees by turns, a tile each, so that both have work. Runs are split where tiles
/// end. What the common runs leave of a tile, which both compute anyway, is filled by the half that has more;
/// where one half has no more, the rest of the other follows. Kept between plans for its memory.
class Halves {
public:
  /// Some phase of the config computes items by halves.
  static bool concern(const config::Config &config);

  /// For a plan as it is cut: items, runs and tails in the same order. Items that have nothing for one of the
  /// halves alone stay as they are, as do all of a plan of so many runs that it could outgrow
  /// TileList::kMostRuns. Linear.
  void order(int ratio, Plan &plan);

private:
  /// An item both halves of which have tokens of their own.
  struct Split {
    int item;
    int own[2]; ///< tokens that one half alone sees
  };
  struct Writer;
  std::size_t findSplits(int ratio, const Plan &plan);

  std::vector<Split> splits_;
  std::vector<abi::Run> runs_;
};

} // namespace deft::plan
