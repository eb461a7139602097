#pragma once

#include "runtime/plan/EdgeBounds.h"
#include "runtime/plan/GroupPrices.h"
#include "runtime/plan/TreeView.h"

#include <vector>

/// FastTree's decision, for every node: are its tokens read together with those of its parent?
///
/// A *group* is the tokens of a node and of the consecutive ancestors that it is joined to. All queries below
/// the node read the group, except those below children that are joined to it: these read the same tokens
/// again in the children's groups. Joining saves partials and items, and costs repeated reads.
///
/// FastTree decides edge by edge from the root down. But a node's best group depends on the nodes above it,
/// and its readers on the nodes below. So that is far from optimal in deep trees. This code fills a table
/// over (node, number of joined ancestors) from the leaves up and reads it from the root down. The table
/// omits nodes whose edges are certain, and keeps only the last of similar neighbours.
namespace deft::plan {

/// Keep the object between plans to reuse its memory. Time is linear in the tree.
class EdgeAssignment {
public:
  /// Width of the table: a node may join 0 to kLanes - 2 ancestors, or all of them. Consecutive ancestors
  /// with few tokens and a single child count as one, and need no decision.
  static constexpr int kLanes = plan::kLanes;
  /// The most tokens of consecutive ancestors that are always read with their child.
  static constexpr int kMostCertainTokens = 64;

  /// Solves a tree, whatever the order of its siblings. `chunkTokens`: groups are cut at this; 0: not cut.
  void solve(const TreeView &view, const CostModel &model, int chunkTokens);

  /// The places that are joined to their parents, ascending. Roots and nodes without readers never are.
  const std::vector<int> &joined() const { return joined_; }

private:
  /// More than the cost of any tree, but small enough that sums of it keep their order.
  static constexpr float kNever = 1e30F;

  /// Which children read a node's tokens in their own groups, so that they leave the node's readers.
  enum Choice : int {
    None,
    Gaining, ///< those whose join costs less than the partials that it saves
    Filling, ///< those whose join costs less than their share of the node's tiles
    One,     ///< the cheapest child that makes a row tile cheaper or removes one
    All,
  };

  /// A lane is the number of ancestors joined to the node within its region (EdgeBounds). Lanes beyond its
  /// depth are undefined. Costs omit the part of the subtree's cost that all lanes share.
  struct Half {       ///< four lanes; few entries need the other four
    Float4 joinPrice; ///< by the parent's lane: cost of joining the parent minus cost of standing apart
    Int4 above;       ///< tokens of the joined ancestors; in the last lane, of all ancestors in the region
    Int4 choice;      ///< by lane, as the next two
    Float4 fillPrice; ///< price of a query in the node's group if tiles were divisible
    Int4 one;         ///< the child of Choice::One, relative to the node
  };
  struct Entry {
    int depth = 0;            ///< ancestors in the region, except those that are always read with their child
    int certainTokens = 0;    ///< of the ancestors that are always read with the node
    bool isWithChild = false; ///< always read with its only child that has readers
    Half half[2];

    int halves() const { return depth < 4 ? 1 : 2; } ///< the lanes that are defined
    int choice(int lane) const { return half[lane / 4].choice[lane % 4]; }
    int one(int lane) const { return half[lane / 4].one[lane % 4]; }
    float fillPrice(int lane) const { return half[lane / 4].fillPrice[lane % 4]; }
    float joinPrice(int lane) const { return half[lane / 4].joinPrice[lane % 4]; }
  };

  /// For each choice: the cost of the children that join, over standing apart, and their readers.
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
  std::vector<Entry> entries_; ///< of the places that need a decision, in preorder
  std::vector<int> filled_;    ///< these places
  std::vector<std::size_t>
      alike_; ///< omitted places, whose neighbour is decided instead, by their index in EdgeBounds::open
  // For open places:
  std::vector<int> slots_;           ///< its entry, or that of an identical neighbour
  std::vector<unsigned char> lanes_; ///< the choice
  std::vector<char> isJoined_;
  std::vector<int> joined_;
};

} // namespace deft::plan
