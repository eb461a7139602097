#include "runtime/tree/SequenceTree.h"

#include "runtime/tree/TreeError.h"

#include <string>

namespace deft::tree {

using support::Result;

Result<SequenceTree> SequenceTree::make(const PoolOptions &options) {
  auto pool = PagedPool::make(options);
  if (!pool)
    return pool.error();
  return SequenceTree(std::move(*pool));
}

void SequenceTree::setRange(int node, int range) {
  if (node >= static_cast<int>(ranges_.size()))
    ranges_.resize(static_cast<std::size_t>(node) + 1, -1);
  ranges_[node] = range;
}

Result<int> SequenceTree::addNode(int parent, int tokens) {
  const auto range = pool_.allocate(tokens);
  if (!range)
    return range.error();
  auto node = tree_.addNode(parent, tokens, pool_.range(*range).location);
  if (!node) {
    (void)pool_.release(*range);
    return node.error();
  }
  setRange(*node, *range);
  setPolluted({*node, 0, tokens}, false);
  return node;
}

Result<std::vector<int>> SequenceTree::addTokenTree(int sequence, std::span<const int> parents) {
  if (!tree_.isAlive(sequence))
    return wrong("there is no node " + std::to_string(sequence) + " to hang a token tree below");
  for (std::size_t i = 0; i < parents.size(); ++i)
    if (parents[i] < -1 || parents[i] >= static_cast<int>(i))
      return wrong("parent " + std::to_string(parents[i]) + " of token " + std::to_string(i) +
                   " is not an earlier token");
  const auto ranges = pool_.allocateTogether(std::vector<int>(parents.size(), 1));
  if (!ranges)
    return ranges.error();
  std::vector<int> nodes;
  for (std::size_t i = 0; i < parents.size(); ++i) {
    const auto node =
        tree_.addNode(parents[i] < 0 ? sequence : nodes[parents[i]], 1, pool_.range((*ranges)[i]).location);
    if (!node) { // too many nodes, or a path that is too long
      for (std::size_t done = 0; done < nodes.size(); ++done)
        if (parents[done] < 0)
          (void)tree_.prune(nodes[done]);
      for (std::size_t done = 0; done < ranges->size(); ++done)
        (void)pool_.release((*ranges)[done]);
      for (int added : nodes)
        ranges_[added] = -1;
      return node.error();
    }
    setRange(*node, (*ranges)[i]);
    setPolluted({*node, 0, 1}, false);
    nodes.push_back(*node);
  }
  return nodes;
}

/// Grows the node's range and updates the node's location.
Result<std::vector<TokenCopy>> SequenceTree::growRange(int node, int tokens) {
  auto copies = pool_.append(ranges_[node], tokens);
  if (!copies)
    return copies;
  const int location = pool_.range(ranges_[node]).location;
  if (location != tree_.nodes()[node].location)
    (void)tree_.place(node, location); // cannot fail: the pool's table is not larger than the tree's
  copyPolluted(*copies);
  setPolluted({node, tree_.nodes()[node].tokens, tokens}, false);
  return copies;
}

Result<std::vector<TokenCopy>> SequenceTree::append(int leaf, int tokens) {
  if (auto checked = tree_.checkAppend(leaf, tokens); !checked)
    return checked.error();
  auto copies = growRange(leaf, tokens);
  if (copies)
    (void)tree_.append(leaf, tokens); // checked above
  return copies;
}

Result<int> SequenceTree::split(int node, int position) {
  const auto upper = tree_.split(node, position);
  if (upper)
    setRange(*upper, pool_.split(ranges_[node], position).value());
  return upper;
}

Result<int> SequenceTree::fork(int node, std::optional<int> position) {
  const auto branch = tree_.fork(node, position);
  if (!branch)
    return branch;
  const int upper = tree_.nodes()[*branch].parent;
  const bool wasSplit = position && *position > 0 && upper != node;
  if (wasSplit)
    setRange(upper, pool_.split(ranges_[node], *position).value());
  setRange(*branch, pool_.allocate(0).value());
  (void)tree_.place(*branch, pool_.range(ranges_[*branch]).location); // it has no tokens, so this cannot fail
  return branch;
}

/// Frees the ranges of those nodes of dying_ that are dead.
void SequenceTree::releaseDead() {
  for (int node : dying_)
    if (!tree_.isAlive(node)) {
      (void)pool_.release(ranges_[node]);
      ranges_[node] = -1;
    }
}

Result<void> SequenceTree::prune(int node) {
  dying_.clear();
  if (tree_.isAlive(node)) {
    const int end = tree_.nextAfterSubtree(node);
    for (int dying = node; dying != end; dying = tree_.nextInPreorder(dying))
      dying_.push_back(dying);
  }
  if (auto pruned = tree_.prune(node); !pruned)
    return pruned;
  releaseDead();
  return {};
}

Result<std::vector<TokenCopy>> SequenceTree::accept(int sequence, int last) {
  const auto tokens = tree_.checkAccept(sequence, last);
  if (!tokens)
    return tokens.error();
  // Takes the new places while the accepted tokens still have their old ones, so that no copy overwrites the
  // source of another.
  const int before = tree_.nodes()[sequence].tokens;
  auto copies = growRange(sequence, *tokens);
  if (!copies)
    return copies;
  dying_.clear();
  const int end = tree_.nextAfterSubtree(sequence);
  for (int dying = tree_.nextInPreorder(sequence); dying != end; dying = tree_.nextInPreorder(dying))
    dying_.push_back(dying);
  int to = tree_.nodes()[sequence].location + before;
  const auto accepted = tree_.accept(sequence, last).value(); // checked above
  for (const Stretch &stretch : accepted) {
    pool_.addCopies(stretch.location, to, stretch.tokens, *copies);
    movePolluted(stretch, to);
    to += stretch.tokens;
  }
  releaseDead();
  return copies;
}

Result<std::vector<TokenCopy>> SequenceTree::apply(const TreeEdit &edit) {
  const auto withoutCopies = [](const auto &result) -> Result<std::vector<TokenCopy>> {
    if (!result)
      return result.error();
    return std::vector<TokenCopy>();
  };
  switch (edit.kind) {
  case TreeEdit::Kind::AddNode:
    return withoutCopies(addNode(edit.node, edit.value));
  case TreeEdit::Kind::Append:
    return append(edit.node, edit.value);
  case TreeEdit::Kind::Split:
    return withoutCopies(split(edit.node, edit.value));
  case TreeEdit::Kind::Prune:
    return withoutCopies(prune(edit.node));
  case TreeEdit::Kind::Accept:
    return accept(edit.node, edit.value);
  }
  return std::vector<TokenCopy>();
}

} // namespace deft::tree
