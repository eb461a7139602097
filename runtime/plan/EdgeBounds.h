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
  /// Whether any place does not stand apart.
  bool links() const { return !linked_.empty(); }
  bool hasOpenChild(int place) const { return hasOpenChild_[static_cast<std::size_t>(place)] != 0; }
  /// 1 for each place that is joined, else 0.
  void writeJoined(std::vector<char> &isJoined) const {
    isJoined.resize(edges_.size());
    std::transform(edges_.begin(), edges_.end(), isJoined.begin(),
                   [](Edge edge) { return static_cast<char>(edge == Edge::Joined); });
  }
  /// Places with an open edge, up or down, in preorder.
  const std::vector<int> &open() const { return open_; }

  // Of places with an edge that is not apart, up or down:
  /// Where the region begins.
  int top(int place) const { return regions_[static_cast<std::size_t>(place)].top; }
  /// Equal for places whose subtrees are alike, as far as their regions go.
  std::uint64_t shape(int place) const { return regions_[static_cast<std::size_t>(place)].shape; }

private:
  struct Region {
    std::uint64_t shape;
    int deepest; ///< past the last position that is read below
    int top;
    bool isShort;
    int readTokens;
  };

  void linkChildren(const TreeView &view, const GroupPrices &prices, int place);
  void findDepths(const TreeView &view);
  void findShapes(const TreeView &view);
  void divide(const TreeView &view, int shortTokens);

  std::vector<Edge> edges_; ///< by place, as are:
  std::vector<char> hasOpenChild_;
  std::vector<Region> regions_;
  std::vector<int> linked_; ///< places that do not stand apart, in preorder
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
