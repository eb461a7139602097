#pragma once

#include "runtime/tree/KvTree.h"

#include <cstdint>
#include <vector>

namespace deft::tree {

enum class PlacementOrder {
  InOrder,   ///< nodes one after the other in their order, pages in the order of the pool
  Scattered, ///< nodes shuffled with gaps between them, pages shuffled over a larger pool
};

struct PlacementOptions {
  int pageSize = 16; ///< 0: one contiguous cache
  PlacementOrder order = PlacementOrder::InOrder;
  std::uint64_t seed = 0; ///< for PlacementOrder::Scattered
  int poolPages = 0;      ///< at least this many physical pages (contiguous: tokens)
};

/// The cache for a tree, once placed. If a node ends inside a page, the next one shares that page.
struct CachePlacement {
  int pageSize = 0;
  int poolPages = 0;          ///< physical pages of the pool; contiguous: tokens of the cache
  std::vector<int> pageTable; ///< physical page of each page of the table; empty when contiguous
  int poolTokens() const { return pageSize == 0 ? poolPages : poolPages * pageSize; }
};

/// Gives every node of the tree a location and assigns physical pages to the table. Equal trees, options and
/// seeds give equal placements.
support::Result<CachePlacement> placeInCache(KvTree &tree, const PlacementOptions &options);

/// A copy of the tree. If some nodes have no place, all are laid out in order: for callers that plan a tree
/// without a cache.
support::Result<KvTree> placedTree(const KvTree &tree, int pageSize);

} // namespace deft::tree
