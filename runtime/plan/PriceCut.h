#pragma once

#include "runtime/plan/CostModel.h"
#include "runtime/plan/Tiles.h"

#include <vector>

namespace deft::plan {

/// Cuts tiles by price: tiles of many rows into shorter items than those of few, so that all items of a plan
/// cost about the same and fill so many rounds of all blocks. Keep the object between plans to reuse its
/// memory.
class PriceCut {
public:
  /// Sets the chunk of each tile that needs several items; the others have one. At most `items` items in all,
  /// as equal as that allows, if there are no more tiles than that; else no tile is cut. Returns the most
  /// tokens of an item, rounded up to a chunk.
  int set(const CostModel &model, int items, TileList &list);
  /// Removes these chunks.
  static void clear(TileList &list);

private:
  struct Whole {        ///< a tile that is not cut
    double restUs = 0;  ///< its price without the start, which is divided among its items
    double startUs = 0; ///< what each item costs again
    double leastUs = 0; ///< the least part of the rest that an item has
    int tokens = 0, mostItems = 1;
    int itemsOf(double most) const; ///< so that none of them costs more, as far as that is possible
  };
  bool fit(double most, int items) const;

  std::vector<Whole> tiles_;
};

} // namespace deft::plan
