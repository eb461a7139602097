#pragma once

#include "runtime/reference/Check.h"

#include <optional>
#include <string>
#include <vector>

namespace deft::cli {

/// One way to compute a tree.
struct CompareRow {
  std::string spec; ///< the attention, with the file where two have one name
  std::string tree;
  bool isTuned = false;  ///< by a config that was tuned, else by the one that runs where nothing is
  bool isChosen = false; ///< cut as that config says, which is what `deftc run` takes where it is the first
  std::string asked;     ///< partition
  std::string partition; ///< of the plan: what `auto` took
  int chunkTokens = 0;   ///< of the plan
  long long items = 0, itemTokens = 0, partialSlots = 0;
  double planUs = 0;
  int rounds = 0;                               ///< in which it was timed: as many as all of its tree's
  double medianUs = 0, leastUs = 0, mostUs = 0; ///< of rounds, each a median; 0: it could not be run
  std::string fault;                            ///< why not
  std::optional<reference::CheckReport> check;
};

/// Rows of one tree are timed in turn, round by round, so that what else the machine does meets all of them.
struct CompareReport {
  std::string backend, device;
  std::vector<CompareRow> rows; ///< tree by tree
  std::vector<std::string> notes;

  /// The rows of each tree, in order.
  std::vector<std::vector<const CompareRow *>> byTree() const;
  bool isRight() const; ///< no row failed its check
  int rounds() const;   ///< of the tree with the fewest; where nobody says how many, a large one has fewer
};

} // namespace deft::cli
