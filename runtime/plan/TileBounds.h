#pragma once

#include "runtime/plan/Auto.h"
#include "runtime/plan/CostModel.h"
#include "runtime/plan/Tiles.h"

#include <vector>

namespace deft::plan {

/// What the plan of some tiles costs at least, by the model, before they are cut into items: `auto` makes no
/// plan that is dearer for certain. Linear in the tiles' runs once, then in the tiles for each chunk. Kept
/// for its memory.
class TileBounds {
public:
  void set(const TileList &list, const TreeView &view, const CostModel &model);

  /// rankOf() of a plan whose items have `chunkTokens` at most, where a tile has no limit of its own; never
  /// more than that. Of tiles that are one item each, all is known but how blocks share them.
  double leastRank(int chunkTokens) const { return least(chunkTokens).rank(*model_); }
  /// What it follows from.
  LowerBound least(int chunkTokens) const;

private:
  struct Whole {
    int tokens;
    int limit; ///< 0: the plan's chunk
    int queries;
    int runs;
    int common;    ///< tokens at its beginning that all its queries see
    double unitUs; ///< where it is one item
  };

  const CostModel *model_ = nullptr;
  std::vector<Whole> tiles_;
  PlanWork work_; ///< without what depends on the chunk
};

} // namespace deft::plan
