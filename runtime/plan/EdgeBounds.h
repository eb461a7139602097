#pragma once

#include "runtime/plan/GroupPrices.h"
#include "runtime/plan/TreeView.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace deft::plan {

/// Decides the certain edges of a tree before the others are weighed against each other. Most edges are
/// certain. Keep the object between plans to reuse its memory. Time is linear in the tree.
///
/// If a node joins its parent, the node's readers read the parent's tokens again. If that costs more than it
/// can ever save, the node stands *apart*. Nodes connected by the other edges form a *region*. If a region's
/// paths are so short that reading one again costs less than a partial, the whole region is *joined*. All
/// other edges are *open*.
class EdgeBounds {
public:
  enum class Edge : char { Apart, Joined, Open };

  void find(const TreeView &view, const GroupPrices &prices);

  /// The edge from a place to its parent. Apart for roots and for places without readers.
  Edge edge(int place) const { return edges_[static_cast<std::size_t>(place)]; }
  int readers(int place) const { return readers_[static_cast<std::size_t>(place)]; }
  bool hasOpenChild(int place) const { return hasOpenChild_[static_cast<std::size_t>(place)] != 0; }
  /// Places that do not stand apart, in preorder.
  const std::vector<int> &linked() const { return linked_; }
  /// 1 for each place that is joined, else 0.
  void writeJoined(std::vector<char> &isJoined) const {
    isJoined.resize(edges_.size());
    std::transform(edges_.begin(), edges_.end(), isJoined.begin(),
                   [](Edge edge) { return static_cast<char>(edge == Edge::Joined); });
  }
  /// Places that have an open edge to the parent or to a child. Parents come before their children, the
  /// places of a region are in preorder, and each subtree is contiguous.
  const std::vector<int> &open() const { return open_; }

  /// The first place of the region that the place belongs to.
  int top(int place) const { return tops_[static_cast<std::size_t>(place)]; }
  /// Whether the next sibling of the i-th place of open() has an identical subtree: the same tokens and
  /// readers, in the same region, and no other region inside. Its open places then follow in the same order.
  bool isLikeNext(const TreeView &view, std::size_t i) const { return hasShapes_ && hasShapeOfNext(view, i); }
  /// The number of open places in the subtree of the i-th of open(), within its region.
  int openBelow(std::size_t i) const { return shapes_[static_cast<std::size_t>(open_[i])].size; }

private:
  struct Sums { ///< over a node's children, each read separately
    float tokenUs, stepUs;
  };
  struct Above { ///< the costs that decide about a node's children if not all of them may join
    float tokens, tokenUs, tiles, startUs, partialsUs, share;
    int readers;
    bool mayAllJoin;
  };
  struct Shape {
    std::uint64_t hash = 0;
    int size = 0; ///< open places
  };

  void sumChildren(const TreeView &view, const GroupPrices &prices);
  void link(const TreeView &view, const GroupPrices &prices);
  static bool mayJoinTo(const Above &above, const GroupPrices &prices, int queries);
  void divide(const TreeView &view, int shortTokens);
  void findShapes(const TreeView &view);
  bool hasShapeOfNext(const TreeView &view, std::size_t i) const;

  // One array per property, since passes over all places read few of them: so these stay dense in the cache.
  std::vector<Edge> edges_;
  std::vector<char> hasOpenChild_;
  std::vector<int> readers_, tops_;
  std::vector<int> deepest_; ///< by a region's top: end of the last position that the region reads
  std::vector<Sums> sums_;
  std::vector<Above> above_;
  std::vector<Shape> shapes_;
  bool hasShapes_ = false; ///< false: too few places match their neighbours, so none is treated as a match
  std::vector<int> linked_;
  std::vector<int> open_;
};

/// How many tokens of the place some query sees.
inline int readTokens(const TreeView &view, const Place &place) {
  if (place.segmentBegin == place.segmentEnd)
    return 0;
  const Segment &last = view.segments[static_cast<std::size_t>(place.segmentEnd) - 1];
  return last.begin + last.tokens;
}

} // namespace deft::plan
