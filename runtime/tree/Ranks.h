#pragma once

#include "compiler/support/Result.h"

#include <cstdint>
#include <vector>

namespace deft::tree {

/// How the tokens of a tree are distributed over the caches of several ranks.
enum class RankLayout {
  /// A node's location counts the tokens of all caches together, in turns of `unit` tokens. Location x lies
  /// on rank (x / unit) mod count, there at x / (unit * count) * unit + x mod unit.
  Interleaved,
  /// Location x lies on rank holders[x / unit], there at x.
  ByPage,
  /// A node lies on rank holders[node], there at its location.
  ByNode,
};

/// Tokens of a node that are consecutive in a rank's cache.
struct HeldTokens {
  int begin = 0, end = 0; ///< of the node: the first token, and the end
  int tokens = 0;         ///< held by this rank; fewer than end - begin if others hold some between
  int location = 0;       ///< of the first token, in the rank's cache
};

/// Which tokens of a tree lie in this rank's cache. All ranks have the same value, except for `rank`.
class Ranks {
public:
  static constexpr int kMost = 64;
  /// The holder of pages or nodes without tokens: not known yet.
  static constexpr int kNobody = -1;

  /// The holder of tokens that a node will gain.
  enum class Holder { Own, Other, Several };

  /// `holders` is empty for a layout that does not need it.
  static support::Result<Ranks> make(int count, int rank, RankLayout layout, int unit,
                                     std::vector<int> holders = {});

  int count() const { return count_; }
  int rank() const { return rank_; }
  RankLayout layout() const { return layout_; }
  int unit() const { return unit_; }
  const std::vector<int> &holders() const { return holders_; }

  /// The rank that holds this location of a node, or kNobody.
  int holderOf(int node, int location) const;
  /// For interleaved tokens: how many before this location the rank holds, and so where the next one lies.
  int heldBefore(int location) const;

  /// Appends the parts of the tokens [begin, end) that the rank holds, for a node that begins at `location`.
  /// With `mayJoin`, tokens that are consecutive in the rank's cache form one entry, even across gaps.
  void find(int node, int location, int begin, int end, bool mayJoin, std::vector<HeldTokens> &to) const;
  /// How many tokens of an entry lie before token `end` of the node.
  int countBefore(const HeldTokens &held, int location, int end) const;
  /// The future holder of the tokens [begin, end) of the node.
  Holder holderOfNext(int node, int location, int begin, int end) const;

  bool operator==(const Ranks &) const = default;

private:
  int count_ = 1, rank_ = 0, unit_ = 1;
  RankLayout layout_ = RankLayout::Interleaved;
  std::vector<int> holders_;
};

class KvTree;

/// Checks that each token of the tree has a holder; the error names one without. Succeeds without ranks.
support::Result<void> checkHeld(const KvTree &tree);

/// Proposes a layout by pages: entry p is the rank of the page at location p * pageSize. Nodes with several
/// readers are split evenly, in whole pages. Tokens of only one query or leaf all go to one rank, the one
/// with the fewest so far. The same tree gives the same layout on all ranks.
std::vector<int> proposeHolders(const KvTree &tree, int count, int pageSize);

/// A hash of everything that ranks must agree on: nodes, queries, and the layout except `rank`.
std::uint64_t hashOf(const KvTree &tree);

} // namespace deft::tree
