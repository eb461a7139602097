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

/// The work list and the merge map of one tree under one config. A plain value: executors upload it or walk
/// it. templates/deft/abi.h defines its fields.
struct Plan {
  struct Phase { ///< the items of one phase of the config, heaviest first unless `isSpread`
    int itemBegin = 0;
    int itemCount = 0;
    bool isSpread = false; ///< placed so that blocks get about equal work (plan::ItemSpread)
  };

  /// A leaf that some query reads: its planned length, and the queries that follow its growth.
  struct Leaf {
    int node;
    int plannedTokens;
    int tokens;      ///< now; at most Planner::kMostGrowth more than planned
    int followBegin; ///< queries that see all of it, now and later: [followBegin, followEnd)
    int followEnd;
    /// 1: only queries that follow see its last run, and no item that alternates tokens reads it. Only with
    /// ranks: 2: it grows in another rank's cache, so only its queries move here; 3: the new tokens are
    /// spread over all ranks, and its last run gets this rank's part.
    int canGrow;
    std::uint64_t heldNext; ///< for 3: bit i says whether this rank holds the token `plannedTokens` + i

    /// How many of the next `more` tokens of the leaf its last run gets.
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

  /// A place where runs begin because a mask hides the tokens before. advance() moves it.
  struct WindowStart {
    int location, position;   ///< of the first token
    int queryBegin, queryEnd; ///< the queries that read there
    int headBegin, headEnd;   ///< the runs that begin there, in windowHeads
    int shortest, longest;    ///< tokens of these runs
    int others;               ///< other runs that begin there and do not move
    int first;                ///< overlapping starts form a group: the first of the group
    bool isInside;            ///< also inside a run that does not move, so its lost tokens are still read
  };
  struct WindowHead {
    int item, run;
  };

  std::uint64_t generation = 0; ///< generation of the tree that it was made for, or advanced to
  std::uint64_t structureGeneration = 0;
  std::vector<abi::Item> items;
  RunList runs;
  std::vector<Phase> phases;    ///< one for each phase of the config, possibly empty
  std::vector<int> callerIndex; ///< for each query of the plan's order
  std::vector<int> queryPos;
  std::vector<int> mergeQuery; ///< queries with more or fewer than one partial
  std::vector<int> mergeBegin; ///< CSR: mergeQuery.size() + 1 entries
  std::vector<int> mergeSlot;
  int partialSlots = 0;
  std::int64_t readTokens = 0; ///< tokens of the tree that some query may see, by the known part of the mask
  int tableTokens = 0;         ///< the end of the last location that a run names

  spec::Partition partition = spec::Partition::Union; ///< as planned: never `auto`
  int chunkTokens = 0;                                ///< most tokens of an item if its tile sets no limit

  /// The most runs that these items may have if nodes begin and end elsewhere in pages, or tokens are dealt
  /// differently. 0: as many as now.
  int mostRuns = 0;

  UnfilledVector<Leaf> leaves;
  std::vector<Tail> tails; ///< grouped by item, in the order of its runs
  int grownTokens = 0;     ///< no item differs from its planned tokens by more than this
  int strictChunk = 0;     ///< items must not outgrow this; 0: growth may exceed the chunk

  /// The mask that it was made for. A run under a mask that shows more would miss tokens.
  Reach reach;
  int trimStep = 1; ///< as in VariantFacts
  std::vector<WindowStart> windowStarts;
  std::vector<WindowHead> windowHeads; ///< grouped by start

  int queryCount() const { return static_cast<int>(callerIndex.size()); }
  void countTable() {
    tableTokens = 0;
    for (const abi::Run &run : runs)
      tableTokens = std::max(tableTokens, run.location + run.tokens);
  }
};

} // namespace deft::plan
