#pragma once

#include "tuner/sparse/SparseMachine.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace deft::sparse {

/// The progress of tuning.
struct Status {
  std::string text;       ///< its current work
  int done = 0, left = 0; ///< lists
};

struct SearchOptions {
  std::vector<Lists> lists; ///< to tune, the most important first
  /// The tile that was chosen before: then only the remaining cuts are measured; none: it is chosen as well.
  std::optional<std::size_t> tile;
  std::function<bool()> isOver;                      ///< asked between measurements; null: never
  std::function<void(const Status &)> progress = {}; ///< null: no listener
};

/// The result for some lists, with the chosen tile.
struct TunedLists {
  Lists lists;
  int itemTokens = 0;   ///< 0: no cut is clearly faster than the untuned one
  int cutUntuned = 0;   ///< for this tile
  double tunedUs = 0;   ///< with the chosen tile and cut
  double untunedUs = 0; ///< with the untuned tile and cut
  double spread = 0;    ///< of tunedUs

  double gain() const { return tunedUs > 0 ? untunedUs / tunedUs : 1; }
};

struct SearchResult {
  std::size_t tile = 0;
  double tileGain = 1;           ///< over the untuned tile, both with their best cuts, as a geometric mean
  std::vector<TunedLists> lists; ///< finished ones, in the given order
  bool isComplete = false;
};

/// The least gain for any choice other than the rule's: less is within noise.
inline constexpr double kLeastGain = 1.01;

/// Finds one tile for all lists, because a variant has a single kernel that reads them, and a cut for each of
/// them. First all tiles run with the rule's cuts. The best ones are timed with all cuts on each of the
/// lists. The best results are then timed again in turns with the rule's, so that a lucky measurement does
/// not win. Errors are those of the machine.
support::Result<SearchResult> search(SparseMachine &machine, const SearchOptions &options);

} // namespace deft::sparse
