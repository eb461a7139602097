#pragma once

#include "compiler/support/Result.h"

#include <cstdint>
#include <vector>

namespace deft::tree {

/// How the tokens of a tree are spread over the caches of several ranks.
enum class RankLayout {
  /// A node's location counts the tokens of all caches together, `unit` at a time: location x lies on rank
  /// (x / unit) mod count, there at x / (unit * count) * unit + x mod unit.
  Interleaved,
  /// The location x lies on the rank that holders[x / unit] says, there at x.
  ByPage,
  /// A node lies on the rank that holders[node] says, there at its location.
  ByNode,
};

/// Tokens of a node that lie next to each other in a rank's cache.
struct HeldTokens {
  int begin = 0, end = 0; ///< of the node: the first one, and past the last one
  int tokens = 0;         ///< that the rank holds; fewer than end - begin where others hold some between them
  int location = 0;       ///< of the first one in the rank's cache
};

/// Which tokens of a tree lie in the cache of this rank. All ranks have the same value except `rank`.
class Ranks {
public:
  static constexpr int kMost = 64;
  /// A holder that is not known yet: of pages or nodes without tokens.
  static constexpr int kNobody = -1;

  /// The holder of tokens that a node does not have yet.
  enum class Holder { Own, Other, Several };

  /// `holders` is empty where the layout does not read it.
  static support::Result<Ranks> make(int count, int rank, RankLayout layout, int unit,
                                     std::vector<int> holders = {});

  int count() const { return count_; }
  int rank() const { return rank_; }
  RankLayout layout() const { return layout_; }
  int unit() const { return unit_; }
  const std::vector<int> &holders() const { return holders_; }

  /// The rank that holds this location of a node, or kNobody.
  int holderOf(int node, int location) const;
  /// Tokens before this location that the rank holds, of interleaved ones: where the next one lies.
  int heldBefore(int location) const;

  /// Appends what the rank holds of the tokens [begin, end) of a node that begins at `location`. With
  /// `mayJoin` tokens that follow each other in the rank's cache are one entry, whatever lies between them.
  void find(int node, int location, int begin, int end, bool mayJoin, std::vector<HeldTokens> &to) const;
  /// How many of an entry's tokens lie before the token `end` of the node.
  int countBefore(const HeldTokens &held, int location, int end) const;
  /// Who will hold the tokens [begin, end) of the node.
  Holder holderOfNext(int node, int location, int begin, int end) const;

  bool operator==(const Ranks &) const = default;

private:
  int count_ = 1, rank_ = 0, unit_ = 1;
  RankLayout layout_ = RankLayout::Interleaved;
  std::vector<int> holders_;
};

class KvTree;

/// Whether each token of the tree has a holder; the error names one that has none. True without ranks.
support::Result<void> checkHeld(const KvTree &tree);

/// A layout by pages for a tree: entry p is the rank of the page at location p * pageSize. Nodes with several
/// readers are split evenly, in whole pages; what one query or leaf has by itself lies on one rank, that
/// which has the least so far. The same tree gives the same layout on all ranks.
std::vector<int> proposeHolders(const KvTree &tree, int count, int pageSize);

/// All that ranks must agree on: nodes, queries, and the layout except `rank`.
std::uint64_t hashOf(const KvTree &tree);

} // namespace deft::tree
