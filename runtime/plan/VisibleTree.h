#pragma once

#include "runtime/plan/Reach.h"
#include "runtime/plan/TreeView.h"
#include "runtime/tree/KvTree.h"

#include <cstdint>
#include <span>
#include <vector>

namespace deft::plan {

/// Reads a tree through a mask, which may hide nothing. Nodes lose tokens that none of their readers can see,
/// at the beginning or in the middle; a node without visible tokens disappears. If queries deep in the tree
/// no longer see tokens that queries above them see, segments have fewer readers.
///
/// It walks from the queries up as far as they see: in a chain of 100,000 nodes, a window costs as much as
/// the window, not as the chain. Keep the object between plans to reuse its memory.
class VisibleTree {
public:
  /// Visible parts begin at multiples of `step` in the cache, or at the beginning of a node. With ranks the
  /// view has only tokens of this rank; with `mayJoin` a place may then have tokens that are not consecutive
  /// in their node (VariantFacts::readsKvPos).
  void read(const tree::KvTree &tree, const Reach &reach, int step, TreeView &view, bool mayJoin = false) {
    read(tree, reach, reach, step, view, mayJoin);
  }
  /// The same, but `ends` decides how far a query sees into its own node, and `reach` decides all else. With
  /// the bound `tree`, `ends` has no effect, because the query's position is the end.
  void read(const tree::KvTree &tree, const Reach &reach, const Reach &ends, int step, TreeView &view,
            bool mayJoin = false);
  /// With ranks, for later reads: nodes with queries are stand-ins for drafts, which this rank has completely
  /// or not at all (HeldSlots::standIns). Empty: there are none.
  void setStandIns(std::span<const std::uint8_t> standIns) { standIns_ = standIns; }
  std::span<const std::uint8_t> standIns() const { return standIns_; }

private:
  struct Mark {                ///< of a node
    std::uint32_t reading = 0; ///< valid only if it equals reading_
    int firstQuery = -1;       ///< first query of the node, by caller's index
    bool isSeen = false;       ///< has a query, or a query sees it
    int leastQPos = kUnseen;   ///< over the queries at its end or below it
  };
  struct Link { ///< of a query, by caller's index
    int ownEnd; ///< end of the tokens that it may see of its node, or tree::Query::kWhole
    int next;   ///< next query of the same node; -1: none
  };
  struct OpenNode {
    int node;
    int firstPlace, endPlace; ///< its stretches; none: it shows nothing
    int above;                ///< place above those of its children; -1: none
    bool canGrow;             ///< leaves below it may grow in place
  };
  struct Cursor {
    int query = 0;
    int common = 0; ///< tokens of the last query's path that the next one also sees
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
  bool isStandIn() const { return !standIns_.empty() && !own_.empty(); }
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
  const tree::Ranks *ranks_ = nullptr; ///< null: all tokens lie on this rank
  bool mayJoin_ = false;
  std::span<const std::uint8_t> standIns_; ///< by caller's index of a query
  TreeView *view_ = nullptr;
  int step_ = 1;
  std::uint32_t reading_ = 0;
  int lastQPos_ = -1; ///< largest q_pos of all queries
  Cursor at_;

  std::vector<Mark> marks_;
  std::vector<Link> links_;
  std::vector<int> qPos_;                   ///< of each query, by caller's index
  std::vector<std::uint64_t> sorted_;       ///< (q_pos, caller's index), ascending
  std::vector<int> tops_;                   ///< nodes that are not roots, but nothing above them is visible
  std::vector<OpenNode> open_;              ///< the path from a top down to the current node
  std::vector<Positions> seen_, stretches_; ///< of a path; of the current node, relative to its beginning
  std::vector<tree::HeldTokens> held_;      ///< the parts of the stretches that this rank holds
  std::vector<std::pair<int, int>>
      own_; ///< tokens of the node seen at most, and caller's index of the node's queries
  std::vector<int> planQPos_, risingFrom_;         ///< by plan order; where its row of rising q_pos begins
  std::vector<Segment> clipped_;                   ///< the view's segments, cut to the queries that see them
  std::vector<std::int64_t> changes_, bothChange_; ///< of tokens that queries read, that neighbours share
  std::int64_t spared_ = 0;                        ///< (query, token) pairs that clipping removed
};

/// The least work that a mask leaves.
struct VisibleCounts {
  std::int64_t tokens = 0; ///< tokens that some query sees
  std::int64_t pairs = 0;  ///< (query, token) pairs in which the query sees the token
};
VisibleCounts countVisible(const tree::KvTree &tree, const Reach &reach);

} // namespace deft::plan
