#include "runtime/plan/Order.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace deft::plan {

namespace {

/// Rows that a warp of any kernel has at a time.
constexpr int kWarpRows = 16;

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

/// Whether the rows of one warp alone see the run.
bool isOfFew(const abi::Run &run, int ratio) {
  return run.queryBegin * ratio / kWarpRows == (run.queryEnd * ratio - 1) / kWarpRows;
}

/// The tokens of an item that many rows see, or few: a walk over the runs of one kind.
class Kind {
public:
  Kind(bool isForFew, int ratio, const abi::Run *run, std::int64_t total)
      : isForFew_(isForFew), ratio_(ratio), run_(run), total_(total) {}

  std::int64_t total() const { return total_; }
  std::int64_t given() const { return given_; }
  bool isDone() const { return given_ == total_; }

  /// Tokens of one run, at most so many, as the item's from `begin` on; how many. `to` is behind the item's
  /// last run, which becomes longer where it ends at these.
  int give(int most, int begin, abi::Run *&to) {
    if (into_ == 0)
      while (isOfFew(*run_, ratio_) != isForFew_)
        ++run_;
    const int tokens = std::min(most, run_->tokens - into_);
    if (into_ > 0 && part_ + 1 == to) {
      part_->tokens += tokens;
    } else {
      part_ = to++;
      *part_ = *run_;
      part_->begin = begin;
      part_->tokens = tokens;
      part_->location += into_;
      part_->position += into_;
    }
    given_ += tokens;
    into_ += tokens;
    if (into_ == run_->tokens) {
      ++run_;
      into_ = 0;
    }
    return tokens;
  }

private:
  bool isForFew_;
  int ratio_;
  const abi::Run *run_;
  int into_ = 0;             ///< tokens of it that have been given
  abi::Run *part_ = nullptr; ///< that has the last of them
  std::int64_t given_ = 0, total_;
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
abi::Run *RunOrder::mixItem(const abi::Item &item, const Shares &shares, int tileKv, int ratio,
                            const abi::Run *from, abi::Run *to) {
  Kind many(false, ratio, from, shares.many), few(true, ratio, from, shares.few);
  for (int begin = 0; begin < item.tokens;) {
    const std::int64_t owed = many.given() * few.total() - few.given() * many.total(); // to the few
    const bool isFewsTurn = owed > 0;
    const int end = static_cast<int>(std::min<std::int64_t>(
        begin + tileKv * tilesOf(isFewsTurn ? owed : 1 - owed, (isFewsTurn ? many : few).total() * tileKv),
        item.tokens));
    Kind &own = isFewsTurn ? few : many, &other = isFewsTurn ? many : few;
    while (begin < end)
      begin += (own.isDone() ? other : own).give(end - begin, begin, to);
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
        callback(index(plan.phases[p].itemBegin + i), config.phases[p].tileKv);
  };
  shares_.assign(plan.items.size(), {});
  std::size_t most = 0;
  bool areMixed = false;
  forEachItem([&](std::size_t i, int tileKv) {
    const abi::Item &item = plan.items[i];
    Shares &own = shares_[i];
    for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r)
      (isOfFew(plan.runs[index(r)], ratio) ? own.few : own.many) += plan.runs[index(r)].tokens;
    most += index(item.runCount);
    if (own.areBoth()) {
      areMixed = true; // and each turn may cut a run of the other kind in two
      most += static_cast<std::size_t>(2 * divideUp(std::min(own.many, own.few), tileKv) + 1);
    }
  });
  if (!areMixed)
    return;
  if (mixed_.size() < most)
    mixed_.resize(most);
  moved_.resize(plan.items.size());
  abi::Run *to = mixed_.data();
  forEachItem([&](std::size_t i, int tileKv) {
    abi::Item &item = plan.items[i];
    const abi::Run *const from = plan.runs.data() + item.runBegin;
    abi::Run *const first = to;
    to = shares_[i].areBoth() ? mixItem(item, shares_[i], tileKv, ratio, from, to)
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
