#pragma once

#include "runtime/tree/KvTree.h"

#include <cstdint>
#include <vector>

namespace deft::tree {

enum class PlacementOrder {
  InOrder,   ///< nodes back to back in their order, pages in the order of the pool
  Scattered, ///< nodes shuffled with gaps between them, pages shuffled over a larger pool
};

struct PlacementOptions {
  int pageSize = 16; ///< 0: one contiguous cache
  PlacementOrder order = PlacementOrder::InOrder;
  std::uint64_t seed = 0; ///< of the scattering
  int poolPages = 0;      ///< at least this many physical pages (contiguous: tokens)
};

/// The cache that a tree was laid out in. Neighbouring nodes share a page where one ends inside it.
struct CachePlacement {
  int pageSize = 0;
  int poolPages = 0;          ///< physical pages of the pool; contiguous: tokens of the cache
  std::vector<int> pageTable; ///< physical page of each page of the table; empty when contiguous
  int poolTokens() const { return pageSize == 0 ? poolPages : poolPages * pageSize; }
};

/// Gives every node of the tree a location and lays the table over a pool. The same tree, options and
/// seed give the same placement.
support::Result<CachePlacement> placeInCache(KvTree &tree, const PlacementOptions &options);

/// The tree as it is, or one laid out in order where it has nodes that are not placed: for who plans it
/// without a cache.
support::Result<KvTree> placedTree(const KvTree &tree, int pageSize);

} // namespace deft::tree
