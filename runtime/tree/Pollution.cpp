#include "runtime/tree/SequenceTree.h"

#include "runtime/tree/TreeError.h"

#include <string>

/// Which tokens are polluted: a mark for each slot of the cache. Forks, splits and prunes do not move tokens,
/// so they need not change marks.
namespace deft::tree {

using support::Result;

Result<void> SequenceTree::checkTokens(std::span<const NodeTokens> tokens) const {
  for (const auto &[node, first, count] : tokens) {
    if (!tree_.isAlive(node))
      return wrong("there is no node " + std::to_string(node));
    const int own = tree_.nodes()[node].tokens;
    if (first < 0 || count < 0 || first > own || count > own - first)
      return wrong(std::to_string(count) + " tokens from " + std::to_string(first) +
                   " on are not those of node " + std::to_string(node) + ", which has " +
                   std::to_string(own));
  }
  return {};
}

void SequenceTree::setPolluted(const NodeTokens &tokens, bool isPolluted) {
  if (isPolluted_.empty())
    return;
  const int begin = tree_.nodes()[tokens.node].location + tokens.first;
  for (int t = 0; t < tokens.tokens; ++t)
    isPolluted_[static_cast<std::size_t>(pool_.slotOf(begin + t))] = isPolluted;
}

void SequenceTree::copyPolluted(std::span<const TokenCopy> copies) {
  if (isPolluted_.empty())
    return;
  for (const TokenCopy &copy : copies)
    for (std::int64_t t = 0; t < copy.tokens; ++t)
      isPolluted_[static_cast<std::size_t>(copy.to + t)] =
          isPolluted_[static_cast<std::size_t>(copy.from + t)];
}

void SequenceTree::movePolluted(const Stretch &accepted, int toLocation) {
  if (isPolluted_.empty())
    return;
  for (int t = 0; t < accepted.tokens; ++t)
    isPolluted_[static_cast<std::size_t>(pool_.slotOf(toLocation + t))] =
        isPolluted_[static_cast<std::size_t>(pool_.slotOf(accepted.location + t))];
}

Result<void> SequenceTree::pollute(std::span<const NodeTokens> tokens) {
  if (auto checked = checkTokens(tokens); !checked)
    return checked;
  if (isPolluted_.empty())
    isPolluted_.resize(static_cast<std::size_t>(pool_.slots()));
  for (const NodeTokens &some : tokens)
    setPolluted(some, true);
  return {};
}

std::vector<NodeTokens> SequenceTree::polluted() const {
  std::vector<NodeTokens> found;
  if (isPolluted_.empty())
    return found;
  for (int node = tree_.firstRoot(); node >= 0; node = tree_.nextInPreorder(node)) {
    const Node &own = tree_.nodes()[node];
    for (int t = 0; t < own.tokens; ++t) {
      if (!isPolluted_[static_cast<std::size_t>(pool_.slotOf(own.location + t))])
        continue;
      const bool goesOn =
          !found.empty() && found.back().node == node && found.back().first + found.back().tokens == t;
      if (!goesOn)
        found.push_back({node, t, 0});
      ++found.back().tokens;
    }
  }
  return found;
}

Result<void> SequenceTree::correct(std::span<const NodeTokens> tokens) {
  if (auto checked = checkTokens(tokens); !checked)
    return checked;
  for (const NodeTokens &some : tokens)
    setPolluted(some, false);
  return {};
}

} // namespace deft::tree
