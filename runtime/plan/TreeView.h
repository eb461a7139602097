#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/plan/Unfilled.h"
#include "runtime/tree/KvTree.h"

#include <cstdint>
#include <vector>

namespace deft::plan {

/// A living node of the tree, or a stretch of one if a mask hides the rest of it. Places are numbered in
/// preorder, so a subtree is an interval of places and its readers are an interval of queries. It fills one
/// cache line, because every pass over a tree reads places.
struct alignas(64) Place {
  int node;
  int parent;     ///< a place, -1: a root
  int subtreeEnd; ///< past the last place of the subtree
  int tokens;     ///< this and the next three are in the order of tree::Node, so one copy fills them
  int location;
  int depth;
  int position; ///< visible tokens of the path before it
  int ownBegin; ///< queries [ownBegin, ownEnd) belong to the node,
  int ownEnd;   ///< queries [ownBegin, readersEnd) to its subtree
  int readersEnd;
  int firstEnd;     ///< set by TreeView::putLast (see isLast)
  int segmentBegin; ///< the node's visible tokens: [segmentBegin, segmentEnd) of segments
  int segmentEnd;
  int leaf;   ///< its number among the leaves that are read; -1: has children, or no reader
  int hidden; ///< hidden tokens of the path before it
};

/// Tokens of one node that the same queries see: [queryBegin, queryEnd) in plan order. With a slope of 1 it
/// is a causal stretch: the queries [queryBegin + t, queryEnd), at least one, see token t.
struct Segment {
  int place;
  int begin; ///< first token, counted from the node's start
  int tokens;
  int queryBegin;
  int queryEnd;
  int slope;

  Segment() = default; // does not initialise, so that room for many segments costs nothing
  Segment(int place, int begin, int tokens, int queryBegin, int queryEnd, int slope = 0)
      : place(place), begin(begin), tokens(tokens), queryBegin(queryBegin), queryEnd(queryEnd), slope(slope) {
  }
  bool operator==(const Segment &) const = default;
};

/// The tree as partitions read it: plain arrays in preorder, queries in plan order (preorder of the node,
/// tokens seen, caller's index). Rebuilding allocates only if a tree is larger than any before.
///
/// If a mask hides tokens from all queries that could see them (VisibleTree), the paths consist of the other
/// tokens: only Place::hidden counts hidden ones, lengths and positions do not.
class TreeView {
public:
  void build(const tree::KvTree &tree);

  /// Plans do not depend on the order of siblings' queries. This moves the queries of the places `last`
  /// (ascending, no roots) and of their subtrees behind those of their siblings. Then the readers of a node
  /// that are not below its marked children form an interval. Places and segments keep their order, so first
  /// readers may fall from one segment to the next.
  void putLast(const std::vector<int> &last);
  /// After putLast(): whether a place was marked. Place::firstEnd is the end of the readers that are not
  /// below marked children of the place.
  bool isLast(int place) const { return isLast_[static_cast<std::size_t>(place)] != 0; }

  UnfilledVector<Place> places;
  /// Never empty; in preorder and, within a node, by token. So queryBegin never decreases, and a query sees
  /// the segments whose intervals contain it, in the order of its path.
  UnfilledVector<Segment> segments;
  UnfilledVector<Plan::Leaf> leaves; ///< the leaves that are read, in preorder

  // For each query in plan order:
  std::vector<int> callerIndex;
  std::vector<int> queryPos; ///< number of tokens of its path, minus one
  /// Before putLast(): tokens shared with the query before it. No earlier query shares more, because the
  /// readers of a token are neighbours. The first query shares 0, as does the end behind the last.
  std::vector<int> shared;

  std::int64_t readTokens = 0; ///< sum over all segments
  std::int64_t pathTokens = 0; ///< sum over the queries' paths
  int levels = 0;              ///< levels of nodes that have queries: the deepest depth plus one

  bool hasHidden = false; ///< a mask hides tokens: queryPos is then not the mask's q_pos
  /// A mask hides some segments from the last queries of their subtree. Then only segments describe paths,
  /// `shared` counts the tokens that two neighbours both read, and clippedPos holds the number of tokens that
  /// each query reads, minus one.
  bool isClipped = false;
  std::vector<int> clippedPos;

  int placeCount() const { return static_cast<int>(places.size()); }
  int leafCount() const { return static_cast<int>(leaves.size()); }
  int queryCount() const { return static_cast<int>(callerIndex.size()); }
  /// How many tokens of its own place a query sees.
  int seen(const Place &own, int query) const {
    return queryPos[static_cast<std::size_t>(query)] + 1 - own.position;
  }

private:
  struct Cursor;
  /// One query, by caller's index, or the first of several with consecutive indices that end at consecutive
  /// tokens of a node.
  struct Link {
    int position; ///< as in tree::Query
    int next;     ///< next query of the same node; -1: none
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
  UnfilledVector<Link> links_;
  std::vector<std::pair<int, int>> sorted_; ///< (tokens of the path, caller's index) of one node's queries
  // For each place:
  std::vector<char> isLast_;
  std::vector<char> mixed_; ///< whether a marked child comes before an unmarked one
  std::vector<int> shifts_; ///< how far its queries move
  QueryColumns before_;     ///< the columns before the move
};

} // namespace deft::plan
