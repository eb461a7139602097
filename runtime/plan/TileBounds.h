#pragma once

#include "runtime/plan/Auto.h"
#include "runtime/plan/CostModel.h"
#include "runtime/plan/Tiles.h"

#include <vector>

namespace deft::plan {

/// A lower bound of the cost of a plan from its tiles, before they are cut into items. `auto` skips plans
/// whose bound is too high. Time is linear in the tiles' runs once, then in the tiles for each chunk. Keep
/// the object between plans to reuse its memory.
class TileBounds {
public:
  void set(const TileList &list, const TreeView &view, const CostModel &model);

  /// A lower bound of rankOf() for a plan whose items have at most `chunkTokens` tokens unless a tile sets a
  /// limit. If every tile is one item, only the distribution over blocks is estimated.
  double leastRank(int chunkTokens) const { return least(chunkTokens).rank(*model_); }
  /// Whether both chunks cut every tile into equal items.
  bool areCutAlike(int chunkTokens, int otherChunk) const;
  /// The bound that determines the rank.
  LowerBound least(int chunkTokens) const;

private:
  struct Whole {
    int tokens;
    int limit; ///< 0: the plan's chunk
    int queries;
    int runs;
    int common;    ///< tokens at its beginning that all its queries see
    bool isEven;   ///< as in Tile
    double unitUs; ///< its time if it is one item
  };

  const CostModel *model_ = nullptr;
  std::vector<Whole> tiles_;
  PlanWork work_; ///< the part that does not depend on the chunk
};

} // namespace deft::plan
