#include "runtime/plan/Order.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace deft::plan {

namespace {

/// Rows that a warp of any kernel has at a time; of family sm90, tokens of a tile, those that a warp takes of
/// it by itself or that are copied in one piece, and the most warps that an item's rows have.
constexpr int kWarpRows = 16, kTileTokens = 64, kGroupTokens = 16, kMostWarps = 8;

/// In place of a distance: the item's tokens are read in turn.
constexpr int kMixed = std::numeric_limits<int>::min();

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

void turnRuns(const abi::Item &item, Plan &plan) {
  const auto begin = plan.runs.begin() + item.runBegin;
  std::reverse(begin, begin + item.runCount);
  int tokens = 0;
  for (auto run = begin; run != begin + item.runCount; ++run) {
    run->begin = tokens;
    tokens += run->tokens;
  }
}

/// Calls f(item's index, its phase) for all items.
template <class F> void forEachItem(const config::Config &config, const Plan &plan, F f) {
  for (std::size_t p = 0; p < plan.phases.size(); ++p)
    for (int i = 0; i < plan.phases[p].itemCount; ++i)
      f(index(plan.phases[p].itemBegin + i), config.phases[p]);
}

/// The first tail of another item: those of one stand together, in the order of its runs.
std::vector<Plan::Tail>::iterator endOfItem(std::vector<Plan::Tail>::iterator tail, Plan &plan) {
  const int own = tail->item;
  return std::find_if(tail, plan.tails.end(), [own](const Plan::Tail &other) { return other.item != own; });
}

void turnEveryOtherItem(Plan &plan) {
  for (std::size_t i = 1; i < plan.items.size(); i += 2)
    turnRuns(plan.items[i], plan);
  for (auto tail = plan.tails.begin(); tail != plan.tails.end();) {
    const int own = tail->item;
    const auto end = endOfItem(tail, plan);
    if (own % 2 != 0) {
      const abi::Item &item = plan.items[index(own)];
      for (auto one = tail; one != end; ++one)
        one->run = item.runBegin + (item.runBegin + item.runCount - 1 - one->run);
      std::reverse(tail, end);
    }
    tail = end;
  }
}

/// Tokens that are copied in one piece, at most, where they lie in one page, a power of two; 0: each by
/// itself.
int pieceOf(int pageSize) {
  for (int piece = kTileTokens; piece >= kGroupTokens; piece /= 2)
    if (pageSize > 0 && pageSize % piece == 0)
      return piece;
  return 0;
}

/// Tokens of a run, from its first one on.
struct Part {
  int begin, end;
  bool isEmpty() const { return begin == end; }
};

/// Those of the first so many that lie in whole pieces; none of them are `none`.
Part wholePieces(const abi::Run &run, int tokens, int piece, int none) {
  const int begin = -run.location & (piece - 1);
  const int end = tokens - ((run.location + tokens) & (piece - 1));
  return begin < end ? Part{begin, end} : Part{none, none};
}

/// Whether each whole piece of a page is one of a tile, too, and stays it where leaves grow.
bool areInPlace(std::span<const abi::Run> runs, const char *doesGrow, int piece) {
  for (const abi::Run &run : runs) {
    const Part pieces = wholePieces(run, run.tokens, piece, 0);
    const Part groups = piece == kGroupTokens ? pieces : wholePieces(run, run.tokens, kGroupTokens, 0);
    const bool movesOthers = *doesGrow++ != 0 && groups.end == run.tokens && &run != &runs.back();
    if (!groups.isEmpty() && (((run.begin + groups.begin) & (kGroupTokens - 1)) != 0 || movesOthers))
      return false;
    if (!pieces.isEmpty() && ((run.begin + pieces.begin) & (piece - 1)) != 0)
      return false;
  }
  return true;
}

/// Whether runs with whole pieces have nothing beside them, so that these stay together wherever runs go.
bool areOnlyPieces(std::span<const abi::Run> runs) {
  return std::all_of(runs.begin(), runs.end(), [](const abi::Run &run) {
    const Part groups = wholePieces(run, run.tokens, kGroupTokens, 0);
    return groups.isEmpty() || (groups.begin == 0 && groups.end == run.tokens);
  });
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
  Walk(const abi::Run *runs, const int *next, const int *end) : runs_(runs), next_(next), end_(end) {
    open();
  }

  bool isDone() const { return next_ == end_; }

  /// Tokens of one run as the item's from `begin` on, at most up to `end`; gives the first one after them.
  /// `to` is behind the item's last run, which becomes longer where it ends at these.
  int give(int begin, int end, abi::Run *&to) {
    if (end - begin >= left_) { // an exception, so that nothing waits for what is left
      end = begin + left_;
      write(begin, left_, to);
      ++next_;
      open();
    } else {
      const int tokens = end - begin;
      write(begin, tokens, to);
      left_ -= tokens;
      location_ += tokens;
      position_ += tokens;
    }
    return end;
  }

  /// The same of all runs, which have so many.
  void fill(int begin, int end, abi::Run *&to) {
    while (begin < end)
      begin = give(begin, end, to);
  }

private:
  void write(int begin, int tokens, abi::Run *&to) {
    if (part_ != nullptr && part_ + 1 == to) {
      part_->tokens += tokens;
    } else {
      part_ = to++;
      *part_ = {begin, tokens, location_, position_, run_->depth, run_->queryBegin, run_->queryEnd, 0};
    }
  }

  /// The next run.
  void open() {
    part_ = nullptr;
    if (isDone())
      return;
    run_ = runs_ + *next_;
    left_ = run_->tokens;
    location_ = run_->location;
    position_ = run_->position;
  }

  const abi::Run *runs_ = nullptr, *run_ = nullptr;
  const int *next_ = nullptr, *end_ = nullptr; ///< which of the runs are left
  int left_ = 0, location_ = 0, position_ = 0; ///< of `run_`, what has not been given
  abi::Run *part_ = nullptr;                   ///< that has the last of its tokens
};

/// What few rows see of an item. Dealt, each group of tokens is one warp's, and the warps take turns: then
/// each has a group of a tile to itself, and all of them are done with it together.
class Few {
public:
  /// So many walks, one for each warp, or one for all of them.
  Few(const std::array<Walk, kMostWarps> &walks, std::size_t count, bool areDealt)
      : walks_(walks), count_(count), areDealt_(areDealt), turn_(count - 1) {}

  /// The item's tokens from `begin` to `end`, which are not more than there are.
  void fill(int begin, int end, abi::Run *&to) {
    while (begin < end) {
      const int into = begin % kGroupTokens;
      if ((areDealt_ && into == 0) || walks_[turn_].isDone())
        takeTurn();
      const int groupEnd = begin - into + kGroupTokens;
      begin = walks_[turn_].give(begin, areDealt_ && groupEnd < end ? groupEnd : end, to);
    }
  }

private:
  void takeTurn() {
    do
      turn_ = turn_ + 1 < count_ ? turn_ + 1 : 0;
    while (walks_[turn_].isDone());
  }

  std::array<Walk, kMostWarps> walks_;
  std::size_t count_;
  bool areDealt_;
  std::size_t turn_;
};

std::int64_t divideUp(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

} // namespace

/// Each tile is of the kind that is behind, so that both kinds end together; what the last tokens of one
/// leave of a tile is filled by the other. Writes the runs from `to` on, and gives the end.
abi::Run *RunOrder::mixItem(const abi::Item &item, const Shares &shares, const config::PhaseConfig &phase,
                            int ratio, const abi::Run *from, abi::Run *to) {
  const bool areDealt =
      config::isDealt(phase, config::Order::Mixed) && item.queryCount * ratio <= kMostWarps * kWarpRows;
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
  const int warps = areDealt ? (item.queryCount * ratio - 1) / kWarpRows + 1 : 1;
  Few few(ofWarps, index(warps), areDealt);

  Shares left = shares;
  std::int64_t owed = 0; // to the few: tokens, times those of many
  for (int begin = 0, end; begin < item.tokens; begin = end) {
    end = std::min(begin + phase.tileKv, item.tokens);
    const bool isFewsTurn = owed > 0;
    const auto most = std::min<std::int64_t>(isFewsTurn ? left.few : left.many, end - begin);
    const int split = begin + static_cast<int>(most);
    if (isFewsTurn) {
      few.fill(begin, split, to);
      many.fill(split, end, to);
    } else {
      many.fill(begin, split, to);
      few.fill(split, end, to);
    }
    const Shares given = isFewsTurn ? Shares{end - split, split - begin} : Shares{split - begin, end - split};
    left.many -= given.many;
    left.few -= given.few;
    owed += given.many * shares.few - given.few * shares.many;
  }
  return to;
}

void RunOrder::apply(const config::Config &config, const VariantFacts &facts, Plan &plan) {
  if (config.order == config::Order::Alternate)
    turnEveryOtherItem(plan);
  bringPagesForward(config, facts.pageSize, plan);
  if (config.order == config::Order::Mixed)
    mix(config, facts.ratio, plan);
}

/// Writes the runs of all items anew: write(item's index, its phase, its former runs, where they begin) gives
/// where they end, and writes no more than most(item's index, its phase).
template <class Most, class Write>
void RunOrder::rewriteRuns(const config::Config &config, Plan &plan, Most most, Write write) {
  former_.assign(plan.runs.begin(), plan.runs.end());
  plan.runs.clear();
  forEachItem(config, plan, [&](std::size_t i, const config::PhaseConfig &phase) {
    abi::Item &item = plan.items[i];
    const std::size_t begin = plan.runs.size();
    plan.runs.resize(begin + most(i, phase));
    const abi::Run *const end = write(i, phase, former_.data() + item.runBegin, plan.runs.data() + begin);
    plan.runs.resize(index(end - plan.runs.data()));
    item.runBegin = static_cast<int>(begin);
    item.runCount = static_cast<int>(plan.runs.size() - begin);
  });
}

/// Nodes begin and end anywhere in a page. What they have of whole pages comes first, so that a tile's pieces
/// are pages' pieces, which family sm90 copies at once; the rest, token by token, comes last.
void RunOrder::bringPagesForward(const config::Config &config, int pageSize, Plan &plan) {
  const int piece = pieceOf(pageSize);
  const bool hasPieces = piece > 0 && std::any_of(config.phases.begin(), config.phases.end(),
                                                  [](const config::PhaseConfig &phase) {
                                                    return phase.family == config::Family::Sm90;
                                                  });
  if (!hasPieces)
    return;
  const std::size_t mostParts = piece > kGroupTokens ? 5 : 3; // of a run
  const bool isMixed = config.order == config::Order::Mixed;  // then runs go on, and as a rule none grows
  doesGrow_.assign(plan.runs.size(), 0);
  if (!isMixed)
    for (const Plan::Tail &tail : plan.tails)
      doesGrow_[index(tail.run)] = plan.leaves[index(tail.leaf)].canGrow != 0;
  isMisplaced_.assign(plan.items.size(), 0);
  bool areMisplaced = false;
  forEachItem(config, plan, [&](std::size_t i, const config::PhaseConfig &phase) {
    const abi::Item &item = plan.items[i];
    const std::span runs(plan.runs.data() + item.runBegin, index(item.runCount));
    const bool isMisplaced =
        phase.family == config::Family::Sm90 &&
        !(isMixed ? areOnlyPieces(runs) : areInPlace(runs, doesGrow_.data() + item.runBegin, piece));
    isMisplaced_[i] = isMisplaced;
    areMisplaced |= isMisplaced;
  });
  constexpr std::size_t kRoomIsCheap = 1 << 16;
  if (plan.runs.size() <= kRoomIsCheap)
    plan.mostRuns = static_cast<int>(plan.runs.size() * mostParts);
  if (!areMisplaced)
    return;
  endOf_.resize(plan.runs.size());
  const auto mostOf = [&](std::size_t i, const config::PhaseConfig &) {
    return index(plan.items[i].runCount) * (isMisplaced_[i] ? mostParts : 1);
  };
  rewriteRuns(config, plan, mostOf,
              [&](std::size_t i, const config::PhaseConfig &, const abi::Run *runs, abi::Run *to) {
                const abi::Item &item = plan.items[i];
                if (isMisplaced_[i])
                  return writePagesFirst(item, piece, runs, to, plan);
                for (int r = 0; r < item.runCount; ++r)
                  endOf_[index(item.runBegin + r)] = static_cast<int>(to - plan.runs.data()) + r;
                return std::copy_n(runs, item.runCount, to);
              });
  for (auto tail = plan.tails.begin(); tail != plan.tails.end();) {
    const auto end = endOfItem(tail, plan);
    for (auto one = tail; one != end; ++one)
      one->run = endOf_[index(one->run)];
    std::sort(tail, end, [](const Plan::Tail &a, const Plan::Tail &b) { return a.run < b.run; });
    tail = end;
  }
}

/// Writes the item's runs from `to` on, and gives the end.
abi::Run *RunOrder::writePagesFirst(const abi::Item &item, int piece, const abi::Run *runs, abi::Run *to,
                                    const Plan &plan) {
  int begin = 0;
  const auto put = [&](int r, Part part) {
    if (part.isEmpty())
      return;
    const abi::Run &run = runs[r];
    *to = run;
    to->begin = begin;
    to->tokens = part.end - part.begin;
    to->location += part.begin;
    to->position += part.begin;
    if (part.end == run.tokens)
      endOf_[index(item.runBegin + r)] = static_cast<int>(to - plan.runs.data());
    begin += to->tokens;
    ++to;
  };
  const auto forEachRun = [&](auto callback) {
    for (int r = 0; r < item.runCount; ++r) {
      // What grows is not to move others' pages: its last piece is never a whole one.
      const int most = runs[r].tokens - doesGrow_[index(item.runBegin + r)];
      const Part groups = wholePieces(runs[r], most, kGroupTokens, runs[r].tokens);
      callback(r, wholePieces(runs[r], most, piece, groups.end), groups);
    }
  };
  forEachRun([&](int r, Part whole, Part) { put(r, whole); });
  if (piece > kGroupTokens)
    forEachRun([&](int r, Part whole, Part groups) {
      put(r, {groups.begin, whole.begin});
      put(r, {whole.end, groups.end});
    });
  forEachRun([&](int r, Part, Part groups) {
    put(r, {0, groups.begin});
    put(r, {groups.end, runs[r].tokens});
  });
  return to;
}

void RunOrder::mix(const config::Config &config, int ratio, Plan &plan) {
  shares_.assign(plan.items.size(), {});
  bool areMixed = false;
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const abi::Item &item = plan.items[i];
    Shares &own = shares_[i];
    for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r)
      (ownerOf(plan.runs[index(r)], ratio) >= 0 ? own.few : own.many) += plan.runs[index(r)].tokens;
    areMixed |= own.areBoth();
  }
  if (!areMixed)
    return;
  moved_.resize(plan.items.size());
  const auto mostOf = [&](std::size_t i, const config::PhaseConfig &phase) {
    const Shares &own = shares_[i];
    std::int64_t most = plan.items[i].runCount;
    if (own.areBoth()) // each turn may cut a run of the other kind in two, each group of few's one more
      most +=
          2 * divideUp(std::min(own.many, own.few), phase.tileKv) + 1 + own.few / kGroupTokens + kMostWarps;
    return index(most);
  };
  rewriteRuns(config, plan, mostOf,
              [&](std::size_t i, const config::PhaseConfig &phase, const abi::Run *from, abi::Run *to) {
                const abi::Item &item = plan.items[i];
                if (shares_[i].areBoth()) {
                  moved_[i] = kMixed;
                  return mixItem(item, shares_[i], phase, ratio, from, to);
                }
                moved_[i] = static_cast<int>(to - plan.runs.data()) - item.runBegin;
                return std::copy_n(from, item.runCount, to);
              });
  // Where a leaf of such an item grew, tiles would have tokens of both kinds.
  for (Plan::Tail &tail : plan.tails)
    if (const int moved = moved_[index(tail.item)]; moved == kMixed)
      plan.leaves[index(tail.leaf)].canGrow = 0;
    else
      tail.run += moved;
  std::erase_if(plan.tails, [&](const Plan::Tail &tail) { return moved_[index(tail.item)] == kMixed; });
}

} // namespace deft::plan
