#pragma once

#include "runtime/plan/EdgeBounds.h"
#include "runtime/plan/GroupPrices.h"
#include "runtime/plan/TreeView.h"

#include <vector>

/// FastTree's decision: for every node, whether its tokens are read together with those of its parent.
///
/// A *group* is the tokens of a node and of the ancestors that it is joined to in a row; the queries below
/// the node read it together, except those below children that are joined to it: these read the same tokens
/// again, in the children's groups. Joining saves partials and items, and costs reading again.
///
/// FastTree goes from the root down and decides edge by edge. A node's best length depends on what lies
/// above it and its best readers on what lies below, so that misses much in deep trees. Here a table over
/// (node, number of ancestors joined to it) is filled from the leaves up, and read from the root down. It has
/// only the nodes with an edge that is not certain anyway, and of neighbours alike only the last.
namespace deft::plan {

/// Kept between plans for its memory. Linear in the tree.
class EdgeAssignment {
public:
  /// Width of the table: a node may be joined to 0 to kLanes - 2 ancestors, or to all of them. Ancestors with
  /// few tokens and a single way down count as one, and are never asked.
  static constexpr int kLanes = plan::kLanes;
  /// Of ancestors in a row that are always read with their child.
  static constexpr int kMostCertainTokens = 64;

  /// Decides for a tree in any order of its siblings. `chunkTokens`: groups are cut at this; 0: they are not.
  void solve(const TreeView &view, const CostModel &model, int chunkTokens);

  /// The places that are joined to their parents, ascending. A root and a node that nobody reads are not.
  const std::vector<int> &joined() const { return joined_; }

private:
  /// More than any tree costs, and small enough that sums of it stay ordered.
  static constexpr float kNever = 1e30F;

  /// Which children a node in one state takes out of its tokens' readers.
  enum Choice : int {
    None,
    Gaining, ///< those that save more partials than they cost
    Filling, ///< those that cost less than their share of the node's tiles
    One,     ///< the cheapest of those that alone make a row tile cheaper, or one less
    All,
  };

  /// A lane is how many ancestors are joined to the node, of those in its region (EdgeBounds). Lanes beyond
  /// its depth hold nothing of meaning. Costs leave out what the subtree costs in any lane.
  struct Half {       ///< four of the lanes: few entries need the other four, which lie behind
    Float4 joinPrice; ///< by the parent's lane: joined to the parent, over standing alone
    Int4 above;       ///< tokens of the joined ancestors; in the last lane, of all in the region
    Int4 choice;      ///< by lane, as are:
    Float4 fillPrice; ///< of a query in the node's group, tiles taken as divisible
    Int4 one;         ///< the child of Choice::One, from the node
  };
  struct Entry {
    int depth = 0;         ///< ancestors in the region, without those that are always read with their child
    int certainTokens = 0; ///< of the ancestors that the node always has with it
    bool isWithChild = false; ///< always read with its only child that is read
    Half half[2];

    int halves() const { return depth < 4 ? 1 : 2; } ///< of the lanes that mean something
    int choice(int lane) const { return half[lane / 4].choice[lane % 4]; }
    int one(int lane) const { return half[lane / 4].one[lane % 4]; }
    float fillPrice(int lane) const { return half[lane / 4].fillPrice[lane % 4]; }
    float joinPrice(int lane) const { return half[lane / 4].joinPrice[lane % 4]; }
  };

  /// What a node's children cost under each choice, over standing apart, and the readers they take away.
  struct Taken {
    Float4 gain{}, gainQueries{}, fill{}, fillQueries{}, one = splat(kNever), oneQueries{}, all{};
    bool mayAllJoin = true;
  };

  Entry &entryOf(int place) { return entries_[static_cast<std::size_t>(slots_[place])]; }
  void weigh(const TreeView &view);
  void listEntries(const TreeView &view);
  void countAbove(const TreeView &view, int place, Entry &entry);
  bool isWithChild(const TreeView &view, int place, int certainTokens) const;
  void fill(const TreeView &view, int place, Entry &entry);
  Float4 choose(const TreeView &view, int place, Half &half, int h);
  Taken takeChildren(const TreeView &view, int place, Half &half, int h);
  int onlyChild(const TreeView &view, int place) const;
  Float4 chooseOnly(const Place &place, int child, Half &half, int h, Float4 tokens, Int4 isWhole,
                    Float4 alone);
  Float4 chooseBest(const TreeView &view, int place, Half &half, int h, Float4 tokens, Int4 isWhole,
                    Float4 alone);
  void decide(const TreeView &view, int place);
  void decideLike(const TreeView &view, std::size_t open);
  bool takes(const Entry &entry, int lane, int child, float price, float queries) const;

  EdgeBounds bounds_;
  GroupPrices prices_;
  std::vector<Entry> entries_; ///< of the places that are weighed, in preorder
  std::vector<int> filled_;    ///< these places
  std::vector<std::size_t>
      alike_; ///< places that are not, for one next to them is, by their index in EdgeBounds::open
  // By place, of open ones:
  std::vector<int> slots_;           ///< its entry, or that of the place that it is like
  std::vector<unsigned char> lanes_; ///< the choice
  std::vector<char> isJoined_;
  std::vector<int> joined_;
};

} // namespace deft::plan
