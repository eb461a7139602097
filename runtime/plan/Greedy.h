#pragma once

#include "runtime/plan/EdgeAssignment.h"
#include "runtime/plan/Partitions.h"

namespace deft::plan {

/// Partition `greedy`: FastTree's groups. Kept between plans for its memory.
class GreedyPartition {
public:
  /// Decides which nodes are joined to their parents, and orders the view anew where readers of a group would
  /// not be neighbours otherwise.
  void assign(TreeView &view, const CostModel &model, int chunkTokens);

  /// The same for an assignment from outside: of each place, 1: joined to its parent.
  void assign(TreeView &view, const std::vector<char> &isJoined);

  /// Row tiles of the groups of the last assignment.
  void makeTiles(const TreeView &view, int queriesPerTile, PartitionScratch &scratch, TileList &list);

private:
  struct Level { ///< of the path to the place at hand
    int place;
    int top;       ///< the first level of its group
    int groupRuns; ///< from there on to here, of nodes with tokens
    int groupTokens;
  };
  struct Path {            ///< the last group of one query
    int top = -1, end = 0; ///< levels
    bool isWhole = false;  ///< its last run has all the node's tokens
  };

  void addPath(const TreeView &view, const Place &place, int query, Path &last, TileList &list);
  void addGroup(const TreeView &view, const Place &place, int end, int queriesPerTile,
                PartitionScratch &scratch, TileList &list) const;

  EdgeAssignment edges_;
  std::vector<char> isJoined_; ///< of each place
  bool mayJoin_ = false;       ///< else none is
  std::vector<int> groupEnd_;  ///< of each place: past the last query that reads its group
  std::vector<Level> levels_;
  int changed_ = 0; ///< levels below this are as they were when the last path was added
};

} // namespace deft::plan
