#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/plan/Reach.h"
#include "runtime/plan/RunList.h"
#include "runtime/plan/Unfilled.h"
#include "templates/deft/abi.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace deft::plan {

/// The work list and the merge map of one tree under one config. A plain value: the executors upload
/// or walk it, and every field means what templates/deft/abi.h says.
struct Plan {
  struct Phase { ///< the items of one phase of the config, heaviest first
    int itemBegin = 0;
    int itemCount = 0;
  };

  /// A leaf that is read: what it was planned for, and who follows when it grows.
  struct Leaf {
    int node;
    int plannedTokens;
    int tokens;      ///< now; at most Planner::kMostGrowth more
    int followBegin; ///< queries that see all of it, also later: [followBegin, followEnd)
    int followEnd;
    /// 1: its last run is seen by nobody who does not follow, and by no item that is mixed. Of trees over
    /// ranks also 2: it grows in another rank's cache, and only its queries move here; 3: all ranks hold some
    /// of what it gains, and its last run gets this rank's part.
    int canGrow;
    std::uint64_t heldNext; ///< of 3: bit i says whether this rank holds the token `plannedTokens` + i

    /// Of so many tokens that it gains from now on, those that its last run gets.
    int heldOf(int more) const {
      if (canGrow <= 1)
        return more;
      const std::uint64_t next = canGrow == 3 ? heldNext >> (tokens - plannedTokens) : 0;
      return std::popcount(more < 64 ? next & ((std::uint64_t{1} << more) - 1) : next);
    }
  };
  struct Tail { ///< a run that ends where a leaf ends
    int leaf = 0;
    int item = 0;
    int run = 0;
  };

  /// Where runs begin because a mask hides what is before, as long as a new plan is not due.
  struct WindowStart {
    int location, position;   ///< of the first token
    int queryBegin, queryEnd; ///< who reads there
    int headBegin, headEnd;   ///< the runs that begin there, in windowHeads
    int shortest, longest;    ///< tokens of these runs
    int others;               ///< runs that begin there, too, and keep their beginnings
    int first;                ///< of those in a row where one begins in another's runs: the one farthest up
    bool isInside;            ///< of a run that stays as it is: what is lost here is still read there
  };
  struct WindowHead {
    int item, run;
  };

  std::uint64_t generation = 0; ///< of the tree it was made for, or advanced to
  std::uint64_t structureGeneration = 0;
  std::vector<abi::Item> items;
  RunList runs;
  std::vector<Phase> phases;    ///< one for each phase of the config, possibly empty
  std::vector<int> callerIndex; ///< of each query of the plan's order
  std::vector<int> queryPos;
  std::vector<int> mergeQuery; ///< queries with more or fewer than one partial
  std::vector<int> mergeBegin; ///< CSR: mergeQuery.size() + 1 entries
  std::vector<int> mergeSlot;
  int partialSlots = 0;
  std::int64_t readTokens = 0; ///< tokens of the tree that some query sees, as far as the mask is known
  int tableTokens = 0;         ///< past the last location that a run names

  spec::Partition partition = spec::Partition::Union; ///< what was made: never `auto`
  int chunkTokens = 0;                                ///< most tokens of an item without a limit of its own

  /// How many runs these items may have where nodes begin and end elsewhere in pages, and where their tokens
  /// are dealt otherwise; 0: no more than they have.
  int mostRuns = 0;

  UnfilledVector<Leaf> leaves;
  std::vector<Tail> tails; ///< those of one item together, in the order of its runs
  int grownTokens = 0;     ///< no item has more or fewer tokens than planned by more than this
  int strictChunk = 0;     ///< items may not outgrow this; 0: by growth they may

  /// What it was made for: a run under a mask that shows more would miss tokens.
  Reach reach;
  int trimStep = 1; ///< as VariantFacts::trimStep
  std::vector<WindowStart> windowStarts;
  std::vector<WindowHead> windowHeads; ///< those of one start together

  int queryCount() const { return static_cast<int>(callerIndex.size()); }
  void countTable() {
    tableTokens = 0;
    for (const abi::Run &run : runs)
      tableTokens = std::max(tableTokens, run.location + run.tokens);
  }
};

} // namespace deft::plan
