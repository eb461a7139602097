#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/plan/Unfilled.h"
#include "runtime/tree/KvTree.h"

#include <cstdint>
#include <vector>

namespace deft::plan {

/// A living node of the tree, or a stretch of one where a mask hides the rest of it. Its number is its place
/// in preorder, so a subtree is an interval of places and its readers are an interval of queries. One line of
/// the cache: every pass over a tree reads them.
struct alignas(64) Place {
  int node;
  int parent;     ///< a place, -1: a root
  int subtreeEnd; ///< past the last place of the subtree
  int tokens;     ///< with the next three in the order of tree::Node: copied in one piece
  int location;
  int depth;
  int position; ///< tokens of the path before it, hidden ones not counted
  int ownBegin; ///< the node's own queries are [ownBegin, ownEnd), those of its subtree
  int ownEnd;   ///< [ownBegin, readersEnd)
  int readersEnd;
  int firstEnd;     ///< after TreeView::putLast, which tells
  int segmentBegin; ///< the node's tokens that are seen at all: [segmentBegin, segmentEnd) of segments
  int segmentEnd;
  int leaf;   ///< its number among the leaves of the tree that are read; -1: has children, or no reader
  int hidden; ///< tokens of the path before it that nobody who reads it sees
};

/// Tokens of one node that the same queries see: [queryBegin, queryEnd) in plan order. With a slope of 1, a
/// causal stretch: token t is seen by [queryBegin + t, queryEnd), so each by some.
struct Segment {
  int place;
  int begin; ///< first token, counted from the node's start
  int tokens;
  int queryBegin;
  int queryEnd;
  int slope;

  Segment() = default; // leaves it as it is: there may be room for many
  Segment(int place, int begin, int tokens, int queryBegin, int queryEnd, int slope = 0)
      : place(place), begin(begin), tokens(tokens), queryBegin(queryBegin), queryEnd(queryEnd), slope(slope) {
  }
  bool operator==(const Segment &) const = default;
};

/// The tree as partitions read it: plain arrays in preorder, queries in plan order (by preorder of the node,
/// tokens seen, caller's index). Rebuilt in place: nothing is allocated once it has seen a tree of the size.
///
/// Where a mask hides tokens from all who could see them (VisibleTree), paths are what is left of them:
/// lengths and positions count no hidden tokens, except Place::hidden.
class TreeView {
public:
  void build(const tree::KvTree &tree);

  /// The order of siblings' queries is free as far as plans go. Those of the places `last` (ascending, no
  /// roots) and all below go behind those of their siblings; so the readers of a node without those of its
  /// marked children are an interval. Places and segments keep their order, and first readers no longer rise
  /// with it.
  void putLast(const std::vector<int> &last);
  /// After that: whether a place was marked. Place::firstEnd is the end of the readers that are not below its
  /// marked children.
  bool isLast(int place) const { return isLast_[static_cast<std::size_t>(place)] != 0; }

  std::vector<Place> places;
  /// Not empty, in preorder and, within a node, by token. Hence queryBegin never falls, and what a query sees
  /// are the segments around it, in the order of its path.
  UnfilledVector<Segment> segments;
  UnfilledVector<Plan::Leaf> leaves; ///< those that are read, in preorder

  // Of each query in plan order:
  std::vector<int> callerIndex;
  std::vector<int> queryPos; ///< tokens of its path, less one
  /// Tokens that it shares with the one before it, until putLast: as many as with any earlier one, because
  /// the readers of a token are neighbours. The first one, and one behind the last, share none.
  std::vector<int> shared;

  std::int64_t readTokens = 0; ///< of all segments
  std::int64_t pathTokens = 0; ///< sum over the queries' paths
  int levels = 0;              ///< that queries hang on: the deepest one's depth and one

  bool hasHidden = false; ///< a mask decides what is seen: queryPos is not what the mask calls q_pos
  /// Segments have fewer readers than all below them, because the mask hides them from the last ones. Paths
  /// are then told by segments alone; `shared` by what both of two neighbours read, and how much each query
  /// reads, less one, by clippedPos.
  bool isClipped = false;
  std::vector<int> clippedPos;

  int placeCount() const { return static_cast<int>(places.size()); }
  int leafCount() const { return static_cast<int>(leaves.size()); }
  int queryCount() const { return static_cast<int>(callerIndex.size()); }
  /// Tokens of its own place that a query sees.
  int seen(const Place &own, int query) const {
    return queryPos[static_cast<std::size_t>(query)] + 1 - own.position;
  }

private:
  struct Cursor;
  /// Of a query, by caller's index, or of several that follow each other there and end at consecutive tokens
  /// of a node: then of the first one.
  struct Link {
    int position; ///< as tree::Query
    int next;     ///< of the same node; -1: there is none
    int count;
  };
  struct QueryColumns {
    std::vector<int> callerIndex, queryPos;
  };
  void shiftChildren(const Place &place, int at);
  void moveSubtrees(int begin, int end, int queryEnd);
  void move(int begin, int end, int shift);
  void chainQueries(const tree::KvTree &tree);
  void walkTree(const tree::KvTree &tree);
  Cursor addPartial(const tree::KvTree &tree, const Place &place, int index, int firstQuery, Cursor at);
  Cursor addCausal(const Place &place, int index, int firstQuery, Cursor at);
  Plan::Leaf leafOf(const tree::KvTree &tree, const Place &place, int segmentEnd) const;
  void close(Place &place, int placeEnd, Cursor &at);

  std::vector<int> firstQuery_; ///< of each node; -1: none
  std::vector<Link> links_;
  std::vector<std::pair<int, int>> sorted_; ///< tokens on the path and caller's index of a node's queries
  // Of each place:
  std::vector<char> isLast_;
  std::vector<char> mixed_; ///< whether a marked child comes before another one
  std::vector<int> shifts_; ///< how far its queries move
  QueryColumns before_;     ///< they moved
};

} // namespace deft::plan
