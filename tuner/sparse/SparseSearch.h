#pragma once

#include "tuner/sparse/SparseMachine.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace deft::sparse {

/// How far a tuning is.
struct Status {
  std::string text;       ///< what it does now
  int done = 0, left = 0; ///< lists
};

struct SearchOptions {
  std::vector<Lists> lists; ///< what is tuned, the most important first
  /// The tile that was chosen before, of which the rest of the cuts are asked; none: it is chosen, too.
  std::optional<std::size_t> tile;
  std::function<bool()> isOver;                      ///< asked between measurements; null: never
  std::function<void(const Status &)> progress = {}; ///< null: nobody wants to know
};

/// What became of some lists, with the tile that was chosen.
struct TunedLists {
  Lists lists;
  int itemTokens = 0;   ///< 0: no cut is clearly faster than the one without tuning
  int cutUntuned = 0;   ///< for this tile
  double tunedUs = 0;   ///< as they are read now
  double untunedUs = 0; ///< by the tile and the cut without tuning
  double spread = 0;    ///< of tunedUs

  double gain() const { return tunedUs > 0 ? untunedUs / tunedUs : 1; }
};

struct SearchResult {
  std::size_t tile = 0;
  double tileGain = 1; ///< over the tile without tuning, both with their best cuts, in the geometric mean
  std::vector<TunedLists> lists; ///< those that are done, in the order that was given
  bool isComplete = false;
};

/// What is gained at least by anything that is not the rule's: less is within noise.
inline constexpr double kLeastGain = 1.01;

/// Finds a tile for all lists together, because a variant has one kernel that reads them, and for each of
/// them a cut. First all tiles run with the rule's cuts; those that do best are then timed with all cuts on
/// each lists, and what is best of these once more, in turns with the rule's, so that what was lucky is not
/// taken for fast. An error is one of the machine's.
support::Result<SearchResult> search(SparseMachine &machine, const SearchOptions &options);

} // namespace deft::sparse
