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

  /// Takes an assignment from outside, the places that are joined to their parents, ascending; orders the
  /// view anew as for its own.
  void assign(TreeView &view, const std::vector<int> &joined);

  /// Whether the last assignment has ordered the view anew.
  bool hasMoved() const { return isAnyJoined_; }

  /// Row tiles of the groups of the last assignment.
  void makeTiles(const TreeView &view, int queriesPerTile, PartitionScratch &scratch, TileList &list);

private:
  struct Group { ///< of the place at its end
    int top;     ///< the place where it begins
    int runs;    ///< nodes with tokens from there to the place, itself included
  };

  void addGroup(const TreeView &view, int place, int queriesPerTile, PartitionScratch &scratch,
                TileList &list) const;

  EdgeAssignment edges_;
  bool isAnyJoined_ = false;
  std::vector<Group> groups_; ///< of each place
};

} // namespace deft::plan
