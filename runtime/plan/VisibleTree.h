#pragma once

#include "runtime/plan/Reach.h"
#include "runtime/plan/TreeView.h"
#include "runtime/tree/KvTree.h"

#include <cstdint>
#include <vector>

namespace deft::plan {

/// Reads a tree as a mask shows it, which may be all of it: nodes lose what none of their readers can see, at
/// their beginnings and in the middle, and nodes of which nothing is left are not there. Where queries far
/// down the tree have lost what those above them still see, segments have fewer readers.
///
/// Goes from the queries up as far as they see, so it takes time for that and not for the tree: a window in a
/// chain of 100,000 nodes costs what the window costs. Kept between plans for its memory.
class VisibleTree {
public:
  /// Beginnings are at multiples of `step` in the cache, or where nodes begin. Of a tree over ranks the view
  /// has what lies on this one; with `mayJoin` a place may have tokens that do not follow each other in their
  /// node (VariantFacts::readsKvPos).
  void read(const tree::KvTree &tree, const Reach &reach, int step, TreeView &view, bool mayJoin = false) {
    read(tree, reach, reach, step, view, mayJoin);
  }
  /// The same, where what a query of a position may see of its own node ends where `ends` says, and all else
  /// is seen by `reach`. Of no consequence where the mask's bound is `tree`: the position is the end.
  void read(const tree::KvTree &tree, const Reach &reach, const Reach &ends, int step, TreeView &view,
            bool mayJoin = false);

private:
  struct Mark {                ///< of a node
    std::uint32_t reading = 0; ///< it is of this reading, else of an older one and means nothing
    int firstQuery = -1;       ///< its own, by caller's index
    bool isSeen = false;       ///< somebody hangs on it or sees it
    int leastQPos = kUnseen;   ///< of those who stand at its end or behind
  };
  struct Link { ///< of a query, by caller's index
    int ownEnd; ///< past the last token of its node that it may see, or tree::Query::kWhole
    int next;   ///< of the same node; -1: the last one
  };
  struct OpenNode {
    int node;
    int firstPlace, endPlace; ///< its stretches; none: it shows nothing
    int above;                ///< place above its children's, -1: none
    bool canGrow;             ///< leaves below may grow in place
  };
  struct Cursor {
    int query = 0;
    int common = 0; ///< tokens of the last query's path that the next one sees, too
  };
  static constexpr int kUnseen = Reach::kNowhere;

  Mark &markOf(int node);
  void sortQueries(const tree::KvTree &tree, const Reach &ends);
  bool standsInside(std::size_t query, const tree::Node &node) const;
  void markSeen(const tree::KvTree &tree);
  void walk(const tree::KvTree &tree, int top);
  void open(const tree::KvTree &tree, int node, int above, bool canGrow);
  void close(const OpenNode &node);
  void findStretches(const tree::Node &node, const Mark &mark);
  void addStretches(const tree::Node &node, int firstQPos, int lastQPos);
  void findHeld(const tree::Node &node, int index);
  void addPlace(const tree::Node &node, int index, int above, const tree::HeldTokens &held);
  void addQueries(Place &place, std::size_t begin, std::size_t end, const tree::HeldTokens &held,
                  const tree::Node &node);
  bool showsGrowthOf(const tree::Node &leaf);
  tree::Ranks::Holder holderOfGrowth(const tree::Node &leaf, int index) const;
  std::uint64_t heldNextOf(const tree::Node &leaf, int index) const;
  int growthOf(const Place &place, const tree::Node &leaf, int index) const;
  void addLeaf(Place &place, const tree::Node &node, int growth);
  int nextSeen(const tree::KvTree &tree, int sibling) const;

  void clip(TreeView &view);
  void clipSegment(const Segment &segment, const Place &place);
  int endOfReaders(const Segment &segment, int begin, int end) const;
  void countClipped(TreeView &view);

  const Reach *reach_ = nullptr;
  const tree::Ranks *ranks_ = nullptr; ///< null: all tokens lie here
  bool mayJoin_ = false;
  TreeView *view_ = nullptr;
  int step_ = 1;
  std::uint32_t reading_ = 0;
  int lastQPos_ = -1; ///< of all queries
  Cursor at_;

  std::vector<Mark> marks_;
  std::vector<Link> links_;
  std::vector<int> qPos_;                   ///< of each query, by caller's index
  std::vector<std::uint64_t> sorted_;       ///< q_pos and caller's index, ascending
  std::vector<int> tops_;                   ///< nodes above which nobody sees anything, no roots
  std::vector<OpenNode> open_;              ///< from a top down to the node at hand
  std::vector<Positions> seen_, stretches_; ///< of a path; of the node at hand, from its beginning
  std::vector<tree::HeldTokens> held_;      ///< of the stretches, what is read here
  std::vector<std::pair<int, int>>
      own_; ///< tokens of the node seen at most, and caller's index of the node's queries
  std::vector<int> planQPos_, risingFrom_;         ///< by plan order; where its row of rising q_pos begins
  std::vector<Segment> clipped_;                   ///< the view's segments, for those who see them
  std::vector<std::int64_t> changes_, bothChange_; ///< of what queries read, of what neighbours share
  std::int64_t spared_ = 0;                        ///< (query, token) pairs that are clipped
};

/// What there is to do at least.
struct VisibleCounts {
  std::int64_t tokens = 0; ///< that some query sees
  std::int64_t pairs = 0;  ///< of a query and a token that it sees
};
VisibleCounts countVisible(const tree::KvTree &tree, const Reach &reach);

} // namespace deft::plan
