#include "runtime/tree/KvTree.h"
#include "runtime/tree/Ranks.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace deft::tree {

namespace {

/// Assigns pages of a node to ranks. A page that has a holder keeps it: nodes may end inside pages.
class Proposal {
public:
  Proposal(int count, int pageSize) : pageSize_(pageSize), tokens_(static_cast<std::size_t>(count), 0) {}

  void split(const Node &node) {
    const int first = node.location / pageSize_, end = endPage(node), pages = end - first;
    const int count = static_cast<int>(tokens_.size());
    // The last parts are the longest, so they go to the ranks with the fewest tokens.
    std::vector<int> ranks(tokens_.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) {
      return tokens_[static_cast<std::size_t>(a)] > tokens_[static_cast<std::size_t>(b)];
    });
    for (int part = 0; part < count; ++part)
      for (int page = first + static_cast<int>(std::int64_t{pages} * part / count);
           page < first + static_cast<int>(std::int64_t{pages} * (part + 1) / count); ++page)
        give(page, ranks[static_cast<std::size_t>(part)]);
  }
  void giveWhole(const Node &node) {
    const auto least = std::min_element(tokens_.begin(), tokens_.end()) - tokens_.begin();
    // Tokens that begin in a page of some rank continue there: otherwise a step of one page would need two.
    const int first = node.location / pageSize_;
    const int before = node.location % pageSize_ != 0 ? holder(first) : Ranks::kNobody;
    for (int page = first; page < endPage(node); ++page)
      give(page, before != Ranks::kNobody ? before : static_cast<int>(least));
  }
  std::vector<int> take() { return std::move(holders_); }

private:
  int endPage(const Node &node) const {
    return node.tokens > 0 ? (node.location + node.tokens - 1) / pageSize_ + 1 : node.location / pageSize_;
  }
  int holder(int page) const {
    return static_cast<std::size_t>(page) < holders_.size() ? holders_[static_cast<std::size_t>(page)]
                                                            : Ranks::kNobody;
  }
  void give(int page, int rank) {
    if (static_cast<std::size_t>(page) >= holders_.size())
      holders_.resize(static_cast<std::size_t>(page) + 1, Ranks::kNobody);
    if (holder(page) != Ranks::kNobody)
      return;
    holders_[static_cast<std::size_t>(page)] = rank;
    tokens_[static_cast<std::size_t>(rank)] += pageSize_;
  }

  int pageSize_;
  std::vector<std::int64_t> tokens_; ///< for each rank
  std::vector<int> holders_;
};

} // namespace

std::vector<int> proposeHolders(const KvTree &tree, int count, int pageSize) {
  Proposal proposal(count, pageSize);
  const QueryOrder order = tree.queryOrder();
  const auto isShared = [&](int node) {
    const auto at = static_cast<std::size_t>(node);
    const int first = tree.nodes()[at].firstChild;
    const bool hasSeveralChildren =
        first >= 0 && tree.nodes()[static_cast<std::size_t>(first)].nextSibling >= 0;
    return order.subtreeEnd[at] - order.ownBegin[at] > 1 || hasSeveralChildren;
  };
  for (int node = tree.firstRoot(); node >= 0; node = tree.nextInPreorder(node))
    if (isShared(node))
      proposal.split(tree.nodes()[static_cast<std::size_t>(node)]);
  // The longest first, so that all ranks get about the same number.
  std::vector<int> whole;
  for (int node = tree.firstRoot(); node >= 0; node = tree.nextInPreorder(node))
    if (!isShared(node) && tree.nodes()[static_cast<std::size_t>(node)].tokens > 0)
      whole.push_back(node);
  std::stable_sort(whole.begin(), whole.end(), [&](int a, int b) {
    return tree.nodes()[static_cast<std::size_t>(a)].tokens >
           tree.nodes()[static_cast<std::size_t>(b)].tokens;
  });
  for (const int node : whole)
    proposal.giveWhole(tree.nodes()[static_cast<std::size_t>(node)]);
  return proposal.take();
}

namespace {

class Hash {
public:
  void add(std::int64_t value) {
    hash_ ^= static_cast<std::uint64_t>(value);
    hash_ *= 0xff51afd7ed558ccdULL;
    hash_ ^= hash_ >> 32;
  }
  std::uint64_t value() const { return hash_; }

private:
  std::uint64_t hash_ = 0x9e3779b97f4a7c15ULL;
};

} // namespace

std::uint64_t hashOf(const KvTree &tree) {
  Hash hash;
  for (int node = tree.firstRoot(); node >= 0; node = tree.nextInPreorder(node)) {
    const Node &own = tree.nodes()[static_cast<std::size_t>(node)];
    for (const int value : {node, own.parent, own.tokens, own.location})
      hash.add(value);
  }
  for (const Query &query : tree.queries()) {
    hash.add(query.node);
    hash.add(query.position);
  }
  if (const Ranks *const ranks = tree.ranks()) {
    for (const int value : {ranks->count(), static_cast<int>(ranks->layout()), ranks->unit()})
      hash.add(value);
    for (const int holder : ranks->holders())
      hash.add(holder);
  }
  return hash.value();
}

} // namespace deft::tree
