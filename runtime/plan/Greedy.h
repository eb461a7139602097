#pragma once

#include "runtime/plan/EdgeAssignment.h"
#include "runtime/plan/Partitions.h"

namespace deft::plan {

/// Partition `greedy`: the groups of FastTree. Keep the object between plans to reuse its memory.
class GreedyPartition {
public:
  /// Decides which nodes join their parents. It reorders the view if that is needed to make the readers of
  /// each group neighbours.
  void assign(TreeView &view, const CostModel &model, int chunkTokens);

  /// Takes a given assignment: the places that join their parents, ascending. Reorders the view as the other
  /// overload does.
  void assign(TreeView &view, const std::vector<int> &joined);

  /// Whether the last assignment reordered the view.
  bool hasMoved() const { return isAnyJoined_; }

  /// Makes the row tiles of the groups of the last assignment.
  void makeTiles(const TreeView &view, int queriesPerTile, PartitionScratch &scratch, TileList &list);

private:
  struct Group { ///< by the place where the group ends
    int top;     ///< the place where it begins
    int runs;    ///< nodes with tokens, from the top to this place
  };

  void addGroup(const TreeView &view, int place, int queriesPerTile, PartitionScratch &scratch,
                TileList &list) const;

  EdgeAssignment edges_;
  bool isAnyJoined_ = false;
  std::vector<Group> groups_; ///< of each place
};

} // namespace deft::plan
