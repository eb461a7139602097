#include "runtime/plan/Order.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace deft::plan {

namespace {

/// Of a warp: what more of them see is of many.
constexpr int kFewRows = 16;

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

bool isOfFew(const abi::Run &run, int ratio) {
  return run.queryBegin * ratio / kFewRows == (run.queryEnd * ratio - 1) / kFewRows;
}

bool hasBothKinds(const abi::Item &item, int ratio, const Plan &plan) {
  const auto begin = plan.runs.begin() + item.runBegin;
  return std::any_of(
      begin + 1, begin + item.runCount,
      [&, isFirst = isOfFew(*begin, ratio)](const abi::Run &run) { return isOfFew(run, ratio) != isFirst; });
}

/// The tokens of an item that many rows see, or few: a walk over the runs of one kind.
class Kind {
public:
  Kind(bool isForFew, int ratio, const abi::Run *run) : isForFew_(isForFew), ratio_(ratio), run_(run) {}

  void add(int tokens) { total_ += tokens; }
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
  std::int64_t given_ = 0, total_ = 0;
};

/// Tile by tile, of which each has tokens of one kind as long as there are any, so that both kinds end
/// together. Writes the runs from `to` on, and gives the end.
abi::Run *mixItem(const abi::Item &item, int tileKv, int ratio, const abi::Run *from, abi::Run *to) {
  Kind many(false, ratio, from), few(true, ratio, from);
  for (const abi::Run *run = from; run != from + item.runCount; ++run)
    (isOfFew(*run, ratio) ? few : many).add(run->tokens);
  for (int begin = 0; begin < item.tokens;) {
    const bool isFewsTurn = few.given() * many.total() < many.given() * few.total();
    const int end = std::min(begin + tileKv, item.tokens);
    while (begin < end) {
      // What the last tokens of one kind leave of a tile is filled by the other.
      Kind &kind = many.isDone() || (isFewsTurn && !few.isDone()) ? few : many;
      begin += kind.give(end - begin, begin, to);
    }
  }
  return to;
}

} // namespace

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
  if (std::none_of(plan.items.begin(), plan.items.end(),
                   [&](const abi::Item &item) { return hasBothKinds(item, ratio, plan); }))
    return;
  // A tile's end may cut a run in two.
  std::size_t most = plan.runs.size();
  for (std::size_t p = 0; p < plan.phases.size(); ++p)
    for (int i = 0; i < plan.phases[p].itemCount; ++i)
      most += static_cast<std::size_t>(plan.items[index(plan.phases[p].itemBegin + i)].tokens /
                                       config.phases[p].tileKv);
  if (mixed_.size() < most)
    mixed_.resize(most);
  abi::Run *to = mixed_.data();
  for (std::size_t p = 0; p < plan.phases.size(); ++p)
    for (int i = 0; i < plan.phases[p].itemCount; ++i) {
      abi::Item &item = plan.items[index(plan.phases[p].itemBegin + i)];
      abi::Run *const first = to;
      to = mixItem(item, config.phases[p].tileKv, ratio, plan.runs.data() + item.runBegin, first);
      item.runBegin = static_cast<int>(first - mixed_.data());
      item.runCount = static_cast<int>(to - first);
    }
  mixed_.resize(static_cast<std::size_t>(to - mixed_.data()));
  plan.runs.swap(mixed_);
  plan.tails.clear();
  for (Plan::Leaf &leaf : plan.leaves)
    leaf.canGrow = 0;
}

} // namespace deft::plan
