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
  struct Whole { ///< a tile that is not cut
    double us = 0;
    double startUs = 0; ///< the part of it that each further item costs again
    int tokens = 0;
    int itemsOf(double most) const; ///< so that none of them costs more, as far as that is possible
  };
  bool fit(double most, int items) const;

  std::vector<Whole> tiles_;
};

} // namespace deft::plan
