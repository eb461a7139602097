#pragma once

#include "runtime/plan/GroupPrices.h"
#include "runtime/plan/TreeView.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace deft::plan {

/// What is certain about the edges of a tree before they are weighed one against the other: most are. Kept
/// between plans for its memory. Linear in the tree.
///
/// Joining a node means that its readers read the parent's tokens again. Where that costs more than they can
/// save by it, whatever the others do, the node stands *apart*. What hangs together by the other edges is a
/// *region*; where its paths are so short that reading one again is cheaper than a partial, all of it is
/// *joined*. The rest is *open*.
class EdgeBounds {
public:
  enum class Edge : char { Apart, Joined, Open };

  void find(const TreeView &view, const GroupPrices &prices);

  /// To the parent, of each place. Apart: a root, and what nobody reads.
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
  /// Places with an open edge, up or down: parents before their children, those of a region in preorder, and
  /// a subtree's side by side.
  const std::vector<int> &open() const { return open_; }

  /// Where the region begins, of any place.
  int top(int place) const { return tops_[static_cast<std::size_t>(place)]; }
  /// Whether the i-th of open() has a sibling next to it whose subtree is like its own: the same tokens and
  /// readers, the same region, and no other region in either. Its open places then follow in the same order.
  bool isLikeNext(const TreeView &view, std::size_t i) const { return hasShapes_ && hasShapeOfNext(view, i); }
  /// How many places of open() that are of the i-th one's region lie in its subtree.
  int openBelow(std::size_t i) const { return shapes_[static_cast<std::size_t>(open_[i])].size; }

private:
  struct Sums { ///< over a node's children, as if each read by itself
    float tokenUs, stepUs;
  };
  struct Above { ///< what a node's children are weighed by, if not all of them may join
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

  // Columns by place: what is asked of all places is small, and lies together.
  std::vector<Edge> edges_;
  std::vector<char> hasOpenChild_;
  std::vector<int> readers_, tops_;
  std::vector<int> deepest_; ///< of a region's top: past the last position that is read in the region
  std::vector<Sums> sums_;
  std::vector<Above> above_;
  std::vector<Shape> shapes_;
  bool hasShapes_ = false; ///< else few places are like their neighbours, and none is taken to be
  std::vector<int> linked_;
  std::vector<int> open_;
};

/// Tokens of the place that somebody sees.
inline int readTokens(const TreeView &view, const Place &place) {
  if (place.segmentBegin == place.segmentEnd)
    return 0;
  const Segment &last = view.segments[static_cast<std::size_t>(place.segmentEnd) - 1];
  return last.begin + last.tokens;
}

} // namespace deft::plan
