#include "runtime/tree/Ranks.h"

#include "runtime/tree/KvTree.h"
#include "runtime/tree/TreeError.h"

#include <algorithm>
#include <string>
#include <utility>

namespace deft::tree {

using support::Result;

namespace {

std::string ranksOf(int count) { return std::to_string(count) + (count == 1 ? " rank" : " ranks"); }

} // namespace

Result<Ranks> Ranks::make(int count, int rank, RankLayout layout, int unit, std::vector<int> holders) {
  if (count < 1 || count > kMost)
    return wrong("a tree over " + ranksOf(count) + ", not 1 to " + std::to_string(kMost));
  if (rank < 0 || rank >= count)
    return wrong("rank " + std::to_string(rank) + " of " + ranksOf(count),
                 "ranks are numbered from 0 to " + std::to_string(count - 1));
  if (unit < 1 || unit > KvTree::kMaxTokens / kMost)
    return wrong("a unit of " + std::to_string(unit) + " tokens, not 1 to " +
                 std::to_string(KvTree::kMaxTokens / kMost));
  if (layout == RankLayout::Interleaved && !holders.empty())
    return wrong("interleaved tokens, and " + std::to_string(holders.size()) + " holders",
                 "the layout already says which rank holds a token: give no holders");
  for (std::size_t i = 0; i < holders.size(); ++i)
    if (holders[i] < kNobody || holders[i] >= count)
      return wrong((layout == RankLayout::ByPage ? "page " : "node ") + std::to_string(i) + " lies on rank " +
                       std::to_string(holders[i]) + ", and there are " + ranksOf(count),
                   "-1 means that no rank holds it yet");
  Ranks made;
  made.count_ = count;
  made.rank_ = rank;
  made.layout_ = layout;
  made.unit_ = unit;
  made.holders_ = std::move(holders);
  return made;
}

int Ranks::holderOf(int node, int location) const {
  if (layout_ == RankLayout::Interleaved)
    return location / unit_ % count_;
  const auto at = static_cast<std::size_t>(layout_ == RankLayout::ByPage ? location / unit_ : node);
  return at < holders_.size() ? holders_[at] : kNobody;
}

int Ranks::heldBefore(int location) const {
  const int all = unit_ * count_;
  return location / all * unit_ + std::clamp(location % all - rank_ * unit_, 0, unit_);
}

void Ranks::find(int node, int location, int begin, int end, bool mayJoin,
                 std::vector<HeldTokens> &to) const {
  if (begin >= end)
    return;
  if (layout_ == RankLayout::ByNode) {
    if (holderOf(node, location) == rank_)
      to.push_back({begin, end, end - begin, location + begin});
    return;
  }
  if (layout_ == RankLayout::Interleaved && mayJoin) {
    const int first = heldBefore(location + begin), tokens = heldBefore(location + end) - first;
    if (tokens > 0)
      to.push_back({begin, end, tokens, first});
    return;
  }
  const std::size_t before = to.size();
  for (int at = begin; at < end;) {
    const int next = std::min(end, ((location + at) / unit_ + 1) * unit_ - location);
    if (holderOf(node, location + at) == rank_) {
      const int place = layout_ == RankLayout::Interleaved ? heldBefore(location + at) : location + at;
      if (to.size() > before && to.back().end == at && to.back().location + to.back().tokens == place) {
        to.back().end = next;
        to.back().tokens += next - at;
      } else {
        to.push_back({at, next, next - at, place});
      }
    }
    at = next;
  }
}

int Ranks::countBefore(const HeldTokens &held, int location, int end) const {
  const int last = std::clamp(end, held.begin, held.end);
  return held.tokens == held.end - held.begin ? last - held.begin
                                              : heldBefore(location + last) - held.location;
}

Ranks::Holder Ranks::holderOfNext(int node, int location, int begin, int end) const {
  const int first = holderOf(node, location + begin);
  if (first == kNobody)
    return Holder::Several;
  if (layout_ != RankLayout::ByNode)
    for (int at = begin; at < end; at = ((location + at) / unit_ + 1) * unit_ - location)
      if (holderOf(node, location + at) != first)
        return Holder::Several;
  return first == rank_ ? Holder::Own : Holder::Other;
}

Result<void> checkHeld(const KvTree &tree) {
  const Ranks *const ranks = tree.ranks();
  if (!ranks || ranks->layout() == RankLayout::Interleaved)
    return {};
  for (int node = tree.firstRoot(); node >= 0; node = tree.nextInPreorder(node)) {
    const Node &own = tree.nodes()[static_cast<std::size_t>(node)];
    const int unit = ranks->layout() == RankLayout::ByNode ? std::max(own.tokens, 1) : ranks->unit();
    for (int at = 0; at < own.tokens;) {
      if (ranks->holderOf(node, own.location + at) == Ranks::kNobody)
        return wrong("no rank holds token " + std::to_string(at) + " of node " + std::to_string(node) +
                         ", at location " + std::to_string(own.location + at),
                     ranks->layout() == RankLayout::ByPage ? "give the holder of each page with tokens"
                                                           : "give the holder of each node");
      at = ranks->layout() == RankLayout::ByNode ? own.tokens
                                                 : ((own.location + at) / unit + 1) * unit - own.location;
    }
  }
  return {};
}

} // namespace deft::tree
