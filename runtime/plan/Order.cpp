#include "runtime/plan/Order.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace deft::plan {

namespace {

/// Rows that a warp of any kernel has at a time, tokens that one of family sm90 takes of a tile by itself,
/// and the most warps that an item's rows have there.
constexpr int kWarpRows = 16, kGroupTokens = 16, kMostWarps = 8;

/// In place of a distance: the item's tokens are read in turn.
constexpr int kMixed = std::numeric_limits<int>::min();

std::size_t index(int i) { return static_cast<std::size_t>(i); }

void turnRuns(const abi::Item &item, Plan &plan) {
  const auto begin = plan.runs.begin() + item.runBegin;
  std::reverse(begin, begin + item.runCount);
  int tokens = 0;
  for (auto run = begin; run != begin + item.runCount; ++run) {
    run->begin = tokens;
    tokens += run->tokens;
  }
}

void turnEveryOtherItem(Plan &plan) {
  for (std::size_t i = 1; i < plan.items.size(); i += 2)
    turnRuns(plan.items[i], plan);
  // Tails of one item stand together, in the order of its runs.
  for (auto tail = plan.tails.begin(); tail != plan.tails.end();) {
    const int own = tail->item;
    const auto end =
        std::find_if(tail, plan.tails.end(), [own](const Plan::Tail &other) { return other.item != own; });
    if (own % 2 != 0) {
      const abi::Item &item = plan.items[index(own)];
      for (auto one = tail; one != end; ++one)
        one->run = item.runBegin + (item.runBegin + item.runCount - 1 - one->run);
      std::reverse(tail, end);
    }
    tail = end;
  }
}

/// The warp whose rows alone see the run; -1: there are several.
int ownerOf(const abi::Run &run, int ratio) {
  const int first = run.queryBegin * ratio / kWarpRows;
  return first == (run.queryEnd * ratio - 1) / kWarpRows ? first : -1;
}

/// Some of an item's runs, token by token.
class Walk {
public:
  Walk() = default;
  Walk(const abi::Run *runs, const int *next, const int *end) : runs_(runs), next_(next), end_(end) {}

  bool isDone() const { return next_ == end_; }

  /// Tokens of one run, at most so many, as the item's from `begin` on; how many. `to` is behind the item's
  /// last run, which becomes longer where it ends at these.
  int give(int most, int begin, abi::Run *&to) {
    const abi::Run &run = runs_[*next_];
    const int tokens = std::min(most, run.tokens - into_);
    if (into_ > 0 && part_ + 1 == to) {
      part_->tokens += tokens;
    } else {
      part_ = to++;
      *part_ = run;
      part_->begin = begin;
      part_->tokens = tokens;
      part_->location += into_;
      part_->position += into_;
    }
    into_ += tokens;
    if (into_ == run.tokens) {
      ++next_;
      into_ = 0;
    }
    return tokens;
  }

private:
  const abi::Run *runs_ = nullptr;
  const int *next_ = nullptr, *end_ = nullptr; ///< which of them are left
  int into_ = 0;                               ///< tokens of the next one that have been given
  abi::Run *part_ = nullptr;                   ///< that has the last of them
};

/// What few rows see of an item. Dealt, each group of tokens is one warp's, and the warps take turns: then
/// each has a group of a tile to itself, and all of them are done with it together.
class Few {
public:
  /// One walk for each warp, or one for all of them.
  Few(const std::array<Walk, kMostWarps> &walks, bool areDealt)
      : walks_(walks), group_(areDealt ? kGroupTokens : std::numeric_limits<int>::max()) {}

  int give(int most, int begin, abi::Run *&to) {
    const int into = begin % group_;
    if (into == 0 || walks_[turn_].isDone())
      do
        turn_ = (turn_ + 1) % kMostWarps;
      while (walks_[turn_].isDone());
    return walks_[turn_].give(std::min(most, group_ - into), begin, to);
  }

private:
  std::array<Walk, kMostWarps> walks_;
  int group_;
  std::size_t turn_ = kMostWarps - 1;
};

std::int64_t divideUp(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Tiles that settle what is owed, each so much: as a rule one or two, for which no division is needed.
std::int64_t tilesOf(std::int64_t owed, std::int64_t each) {
  return owed <= each ? 1 : owed <= 2 * each ? 2 : divideUp(owed, each);
}

} // namespace

/// So many whole tiles of one kind as it takes until it is the other's turn, so that both kinds end together;
/// what the last tokens of one leave of a tile is filled by the other. Writes the runs from `to` on, and
/// gives the end.
abi::Run *RunOrder::mixItem(const abi::Item &item, const Shares &shares, const config::PhaseConfig &phase,
                            int ratio, const abi::Run *from, abi::Run *to) {
  const bool areDealt =
      phase.family == config::Family::Sm90 && item.queryCount * ratio <= kMostWarps * kWarpRows;
  const auto bucketOf = [&](const abi::Run &run) { // many's is the first
    const int owner = ownerOf(run, ratio);
    return index(areDealt ? owner + 1 : owner >= 0 ? 1 : 0);
  };
  std::array<int, kMostWarps + 2> ends{}; // of buckets, a place further on until they are filled
  for (int r = 0; r < item.runCount; ++r)
    ++ends[bucketOf(from[r]) + 1];
  for (std::size_t b = 1; b < ends.size(); ++b)
    ends[b] += ends[b - 1];
  sorted_.resize(std::max(sorted_.size(), index(item.runCount)));
  for (int r = 0; r < item.runCount; ++r)
    sorted_[index(ends[bucketOf(from[r])]++)] = r;

  const int *const sorted = sorted_.data();
  Walk many(from, sorted, sorted + ends[0]);
  std::array<Walk, kMostWarps> ofWarps;
  for (std::size_t w = 0; w < kMostWarps; ++w)
    ofWarps[w] = Walk(from, sorted + ends[w], sorted + ends[w + 1]);
  Few few(ofWarps, areDealt);

  Shares left = shares;
  for (int begin = 0; begin < item.tokens;) {
    const std::int64_t owed = // to the few
        (shares.many - left.many) * shares.few - (shares.few - left.few) * shares.many;
    const bool isFewsTurn = owed > 0;
    const int end = static_cast<int>(std::min<std::int64_t>(
        begin + phase.tileKv * tilesOf(isFewsTurn ? owed : 1 - owed,
                                       (isFewsTurn ? shares.many : shares.few) * phase.tileKv),
        item.tokens));
    while (begin < end) {
      const bool isFews = isFewsTurn ? left.few > 0 : left.many == 0;
      const int given = isFews ? few.give(end - begin, begin, to) : many.give(end - begin, begin, to);
      (isFews ? left.few : left.many) -= given;
      begin += given;
    }
  }
  return to;
}

void RunOrder::apply(const config::Config &config, int ratio, Plan &plan) {
  switch (config.order) {
  case config::Order::FromRoot:
    return;
  case config::Order::Alternate:
    turnEveryOtherItem(plan);
    return;
  case config::Order::Mixed:
    mix(config, ratio, plan);
    return;
  }
}

void RunOrder::mix(const config::Config &config, int ratio, Plan &plan) {
  const auto forEachItem = [&](auto callback) {
    for (std::size_t p = 0; p < plan.phases.size(); ++p)
      for (int i = 0; i < plan.phases[p].itemCount; ++i)
        callback(index(plan.phases[p].itemBegin + i), config.phases[p]);
  };
  shares_.assign(plan.items.size(), {});
  std::size_t most = 0;
  bool areMixed = false;
  forEachItem([&](std::size_t i, const config::PhaseConfig &phase) {
    const abi::Item &item = plan.items[i];
    Shares &own = shares_[i];
    for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r)
      (ownerOf(plan.runs[index(r)], ratio) >= 0 ? own.few : own.many) += plan.runs[index(r)].tokens;
    most += index(item.runCount);
    if (own.areBoth()) {
      areMixed = true; // and each turn may cut a run of the other kind in two, each group of few's one more
      most += static_cast<std::size_t>(2 * divideUp(std::min(own.many, own.few), phase.tileKv) + 1);
      most += static_cast<std::size_t>(own.few / kGroupTokens + kMostWarps);
    }
  });
  if (!areMixed)
    return;
  if (mixed_.size() < most)
    mixed_.resize(most);
  moved_.resize(plan.items.size());
  abi::Run *to = mixed_.data();
  forEachItem([&](std::size_t i, const config::PhaseConfig &phase) {
    abi::Item &item = plan.items[i];
    const abi::Run *const from = plan.runs.data() + item.runBegin;
    abi::Run *const first = to;
    to = shares_[i].areBoth() ? mixItem(item, shares_[i], phase, ratio, from, to)
                              : std::copy_n(from, item.runCount, to);
    const int begin = static_cast<int>(first - mixed_.data());
    moved_[i] = shares_[i].areBoth() ? kMixed : begin - item.runBegin;
    item.runBegin = begin;
    item.runCount = static_cast<int>(to - first);
  });
  plan.runs.assign(mixed_.data(), to);
  // Where a leaf of such an item grew, tiles would have tokens of both kinds.
  for (Plan::Tail &tail : plan.tails)
    if (const int moved = moved_[index(tail.item)]; moved == kMixed)
      plan.leaves[index(tail.leaf)].canGrow = 0;
    else
      tail.run += moved;
  std::erase_if(plan.tails, [&](const Plan::Tail &tail) { return moved_[index(tail.item)] == kMixed; });
}

} // namespace deft::plan
