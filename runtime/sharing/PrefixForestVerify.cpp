#include "runtime/sharing/PrefixForest.h"

#include <algorithm>
#include <string>

namespace deft::sharing {

using support::Result;

namespace {

support::Error broken(const std::string &what, int number) {
  return {support::ErrorCode::Internal, what + " " + std::to_string(number), ""};
}

} // namespace

Result<void> PrefixForest::verify(const int *table) const {
  // Every member's path has its tokens, each in the member's page; it counts as one that may name these
  // nodes.
  std::vector<std::vector<int>> below(tree_.nodes().size());
  std::size_t ends = 0;
  for (int member = 0; member < static_cast<int>(members_.size()); ++member) {
    const Member &own = members_[index(member)];
    if (own.node < 0)
      continue;
    ++ends;
    if (!tree_.isAlive(own.node) || node(own.node).position + node(own.node).tokens != own.tokens)
      return broken("wrong end of member", member);
    for (int at = own.node; at >= 0; at = node(at).parent) {
      below[index(at)].push_back(member);
      for (int t = 0; t < node(at).tokens; ++t) {
        const int place = node(at).location + t, position = node(at).position + t;
        if (place % pageSize_.tokens() != position % pageSize_.tokens() ||
            table[place / pageSize_.tokens()] != table[own.firstEntry + position / pageSize_.tokens()])
          return broken("another page on the path of member", member);
      }
    }
  }
  std::size_t found = 0;
  for (int at = tree_.firstRoot(); at >= 0; at = tree_.nextInPreorder(at)) {
    const int parent = node(at).parent;
    if (node(at).depth != (parent < 0 ? 0 : node(parent).depth + 1))
      return broken("wrong depth of node", at);
    for (int end = facts(at).firstEnd; end >= 0; end = members_[index(end)].next, --ends)
      if (members_[index(end)].node != at)
        return broken("another's end at node", at);
    if (at == emptyNode_) {
      if (facts(at).firstEnd < 0)
        return broken("nobody ends at the empty node", at);
      continue;
    }
    const std::vector<int> &mayName = below[index(at)];
    if (std::find(mayName.begin(), mayName.end(), facts(at).namer) == mayName.end())
      return broken("somebody else names node", at);
    if (node(at).location != locationIn(facts(at).namer, node(at).position))
      return broken("wrong location of node", at);
    if (node(at).tokens == 0 || isIdle(at) || (node(at).firstChild < 0 && facts(at).firstEnd < 0))
      return broken("nobody needs node", at);
    const int firstEnd = facts(at).firstEnd;
    const bool isOneMembers = firstEnd >= 0 && members_[index(firstEnd)].next < 0 && node(at).firstChild < 0;
    if (node(at).position % step_ != 0 || (node(at).tokens % step_ != 0 && !isOneMembers))
      return broken("part of a step is shared at node", at);
    if (!hasStep(at))
      continue;
    const Member &namer = members_[index(facts(at).namer)];
    const int first = firstOf(table + namer.firstEntry, node(at).position);
    const int there = children_.find(childKey(parent, first));
    if (facts(at).first != first || there < 0 || (step_ == 1 && there != at) ||
        node(there).parent != parent || facts(there).first != first)
      return broken("nobody finds node", at);
    found += there == at;
  }
  if (found != children_.size() || ends != 0)
    return broken("nodes or ends are not as many as", static_cast<int>(found));
  return {};
}

} // namespace deft::sharing
