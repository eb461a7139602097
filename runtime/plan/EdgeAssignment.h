#pragma once

#include "runtime/plan/CostModel.h"
#include "runtime/plan/TreeView.h"

#include <array>
#include <vector>

/// FastTree's decision: for every node, whether its tokens are read together with those of its parent.
///
/// A *group* is the tokens of a node and of the ancestors that it is joined to in a row; the queries below
/// the node read it together, but for those below children that are joined to it: these read the same tokens
/// again, in the children's groups. Joining saves partials and items, and costs reading again.
///
/// FastTree goes from the root down and decides edge by edge. A node's best length depends on what lies
/// above it and its best readers on what lies below, so that misses much in deep trees. Here a table over
/// (node, number of ancestors joined to it) is filled from the leaves up, and read from the root down.
namespace deft::plan {

/// Kept between plans for its memory. Linear in the tree.
class EdgeAssignment {
public:
  /// Width of the table: a node may be joined to 0 to kLanes - 2 ancestors, or to all of them. Ancestors with
  /// few tokens and a single way down count as one, and are never asked.
  static constexpr int kLanes = 8;
  static constexpr int kGluedTokens = 64;

  /// Decides for a tree in any order of its siblings. `chunkTokens`: groups are cut at this; 0: they are not.
  void solve(const TreeView &view, const CostModel &model, int chunkTokens);

  /// Of each place: 1 when it is joined to its parent. A root and a node that nobody reads are not.
  const std::vector<char> &isJoined() const { return isJoined_; }

private:
  using Lanes = std::array<float, kLanes>;

  /// Which children a node in one state takes into its tokens' readers.
  enum Choice : unsigned char {
    None,
    Gaining, ///< those that save more partials than they cost
    Filling, ///< those that cost less than their share of the node's tiles
    All,
    One, ///< the cheapest of those that alone make a row tile less
  };

  struct Entry {
    Lanes above;                   ///< tokens of so many ancestors; last: of all, where they are that many
    Lanes joinPrice;               ///< of a child: joined to its parent in this state, over standing alone
    std::array<int, kLanes> one{}; ///< that child's place
    Lanes fillPrice;               ///< of a query in the node's group, tiles taken as divisible
    float apart = 0;               ///< the subtree's cost when the node stands alone
    float queries = 0;
    float own = 0;
    int depth = 0;       ///< ancestors, glued ones not counted
    int gluedTokens = 0; ///< of the ancestors that the node always has with it
    bool isGlue = false; ///< always read with its only child that is read
    std::array<unsigned char, kLanes> choice{};
  };

  struct Prices {
    double perTile = 0; ///< tiles of a full width
    int width = 1;
    double inverseWidth = 1;
    float item = 0, again = 0, partial = 0;
    float chunk = 0, inverseChunk = 0;
  };

  void setPrices(const CostModel &model, int chunkTokens);
  void countAbove(const TreeView &view);
  void glue(const TreeView &view, int place);
  void fill(const TreeView &view, int place);
  void choose(const TreeView &view);
  float groupUs(float queries, float tokens, bool isDirect) const;
  bool takes(const Entry &entry, int lane, int child) const;

  Prices prices_;
  struct Width { ///< of a tile with so many queries
    float stepUs = 0, inverseStep = 0, slack = 0;
  };
  std::vector<Width> widths_;
  std::vector<Entry> entries_; ///< by place
  std::vector<unsigned char> state_;
  std::vector<char> isJoined_;
};

} // namespace deft::plan
