#include "runtime/plan/Halves.h"

#include "runtime/plan/Tiles.h"

#include <algorithm>
#include <span>

namespace deft::plan {

namespace {

constexpr int kHalfRows = 64;   ///< of a warpgroup
constexpr int kTileTokens = 64; ///< of a tile, for every config of the family

enum Seers { kFirst, kSecond, kBoth };

/// Which half sees a run. A query whose rows are in both counts for both.
struct Seen {
  int firstEnd, secondBegin; ///< queries

  explicit Seen(int ratio) : firstEnd((kHalfRows + ratio - 1) / ratio), secondBegin(kHalfRows / ratio) {}
  Seers by(const abi::Run &run) const {
    return run.queryBegin >= firstEnd ? kSecond : run.queryEnd > secondBegin ? kBoth : kFirst;
  }
};

std::span<const abi::Run> runsOf(const Plan &plan, const abi::Item &item) {
  return std::span(plan.runs).subspan(static_cast<std::size_t>(item.runBegin),
                                      static_cast<std::size_t>(item.runCount));
}

/// How many runs more an item can have by splits, by what its halves see alone. A turn ends within one run;
/// the half with less has no more turns than it has tiles, the other one more, and one fills the tile of the
/// common runs.
std::size_t mostSplits(int ownTokens) { return static_cast<std::size_t>(ownTokens) / kTileTokens + 4; }

/// For an item that is in order.
std::size_t mostSplits(const Seen &seen, const Plan &plan, const abi::Item &item) {
  for (const abi::Run &run : runsOf(plan, item))
    if (seen.by(run) != kBoth)
      return mostSplits(item.tokens - run.begin);
  return 0;
}

/// Tokens that the halves see alone; 0 where one of them sees none.
int ownTokens(const Seen &seen, std::span<const abi::Run> runs) {
  int first = 0, second = 0;
  for (const abi::Run &run : runs) {
    const Seers by = seen.by(run);
    first += by == kFirst ? run.tokens : 0;
    second += by == kSecond ? run.tokens : 0;
  }
  return first > 0 && second > 0 ? first + second : 0;
}

/// Runs that are tails get one more than their leaf in `reserved0` while their items are ordered, so that the
/// tails can be written anew.
void markTails(int runBegin, Plan &plan) {
  for (const Plan::Tail &tail : plan.tails)
    if (tail.run >= runBegin)
      plan.runs[static_cast<std::size_t>(tail.run)].reserved0 = tail.leaf + 1;
}

/// Writes the runs of an item in their new order, and its tails.
struct Writer {
  const Seen seen;
  abi::Run *const runs;
  Plan::Tail *tail;
  int run; ///< where the next one goes
  int item = 0, tokens = 0;
  int locationEnd = -1; ///< of the item's last run

  /// What goes on where the last one ended becomes one run with it: it had been split.
  void add(const abi::Run &from, int skipped, int count) {
    if (from.location + skipped == locationEnd && continues(runs[run - 1], from, skipped)) {
      runs[run - 1].tokens += count;
    } else {
      abi::Run &to = runs[run++];
      to = from;
      to.begin = tokens;
      to.tokens = count;
      to.location += skipped;
      to.position += skipped;
      to.reserved0 = 0;
    }
    locationEnd = from.location + skipped + count;
    tokens += count;
  }
  void end(const abi::Run &from) {
    if (from.reserved0 > 0)
      *tail++ = {from.reserved0 - 1, item, run - 1};
  }
  static bool continues(const abi::Run &last, const abi::Run &from, int skipped) {
    return last.position + last.tokens == from.position + skipped && last.depth == from.depth &&
           last.queryBegin == from.queryBegin && last.queryEnd == from.queryEnd;
  }

  /// How far the turns of one half are.
  struct Turns {
    const abi::Run *run;
    int used = 0; ///< tokens of it
    int left = 0; ///< tokens in all
  };
  void take(int half, int most, Turns &turns) {
    int count = std::min(most, turns.left);
    turns.left -= count;
    while (count > 0) {
      while (seen.by(*turns.run) != half)
        ++turns.run;
      const int piece = std::min(count, turns.run->tokens - turns.used);
      add(*turns.run, turns.used, piece);
      turns.used += piece;
      count -= piece;
      if (turns.used == turns.run->tokens) {
        end(*turns.run);
        ++turns.run;
        turns.used = 0;
      }
    }
  }

  void write(int index, std::span<const abi::Run> from) {
    item = index;
    tokens = 0;
    locationEnd = -1;
    int own = 0, ofFirst = 0;
    for (const abi::Run &one : from) {
      const Seers by = seen.by(one);
      if (by == kBoth) {
        add(one, 0, one.tokens);
        end(one);
      } else {
        own += one.tokens;
        ofFirst += by == kFirst ? one.tokens : 0;
      }
    }
    Turns turns[2] = {{from.data(), 0, ofFirst}, {from.data(), 0, own - ofFirst}};
    int half = turns[kFirst].left >= turns[kSecond].left ? kFirst : kSecond;
    take(half, (kTileTokens - tokens % kTileTokens) % kTileTokens, turns[half]);
    for (; turns[0].left > 0 && turns[1].left > 0; half = 1 - half)
      take(half, kTileTokens, turns[half]);
    for (half = 0; half < 2; ++half)
      take(half, turns[half].left, turns[half]);
  }
  /// Its runs stand `away` from where it says.
  void order(int index, int away, Plan &plan) {
    abi::Item &own = plan.items[static_cast<std::size_t>(index)];
    const int begin = run;
    write(index,
          std::span<const abi::Run>(runs + own.runBegin + away, static_cast<std::size_t>(own.runCount)));
    own.runBegin = begin;
    own.runCount = run - begin;
  }
};

} // namespace

bool hasHalves(const config::Config &config) {
  return std::any_of(config.phases.begin(), config.phases.end(), [](const config::PhaseConfig &phase) {
    return phase.family == config::Family::Sm90 && phase.tileQ > kHalfRows;
  });
}

void orderHalves(int ratio, Plan &plan) {
  plan.halved.clear();
  plan.halvesRatio = 0;
  const Seen seen(ratio);
  std::size_t room = 0, splits = 0;
  for (std::size_t i = 0; i < plan.items.size(); ++i)
    if (const abi::Item &item = plan.items[i]; item.queryCount * ratio > kHalfRows)
      if (const int own = ownTokens(seen, runsOf(plan, item)); own > 0) {
        plan.halved.push_back(static_cast<int>(i));
        splits += mostSplits(own);
        room += static_cast<std::size_t>(item.runCount);
      }
  const int runsEnd = static_cast<int>(plan.runs.size());
  if (plan.runs.size() + room + splits > TileList::kMostRuns)
    plan.halved.clear();
  if (plan.halved.empty())
    return;
  plan.halvesRatio = ratio;
  // As much as orderHalvesAgain may need: leaves grow by a tile at most before a new plan is made.
  plan.runs.reserve(plan.runs.size() + std::max(room, splits + 2 * plan.tails.size()) + splits);
  plan.runs.resize(plan.runs.size() + room + splits);
  markTails(0, plan);

  abi::Run *const runs = plan.runs.data();
  Plan::Tail *const tailsEnd = plan.tails.data() + plan.tails.size();
  Writer writer{seen, runs, plan.tails.data(), runsEnd};
  int taken = 0, kept = 0, item = 0;
  // Items up to `end`, which have the runs up to `runEnd`, move to where those kept before them end.
  const auto keep = [&](int end, int runEnd) {
    const int shift = taken - kept;
    if (shift > 0)
      std::copy(runs + taken, runs + runEnd, runs + kept);
    for (; item < end; ++item)
      plan.items[static_cast<std::size_t>(item)].runBegin -= shift;
    for (; writer.tail != tailsEnd && writer.tail->run < runEnd; ++writer.tail)
      runs[writer.tail->run -= shift].reserved0 = 0;
    kept = runEnd - shift;
  };
  for (const int index : plan.halved) {
    const abi::Item &halved = plan.items[static_cast<std::size_t>(index)];
    const int begin = halved.runBegin;
    keep(index, begin);
    taken = begin + halved.runCount;
    writer.order(index, 0, plan);
    ++item;
  }
  keep(static_cast<int>(plan.items.size()), runsEnd);

  // What was ordered behind all others follows them now.
  const int gap = runsEnd - kept;
  std::copy(runs + runsEnd, runs + writer.run, runs + kept);
  plan.runs.resize(static_cast<std::size_t>(writer.run - gap));
  for (const int index : plan.halved)
    plan.items[static_cast<std::size_t>(index)].runBegin -= gap;
  for (Plan::Tail &tail : plan.tails)
    if (tail.run >= runsEnd)
      tail.run -= gap;
}

void orderHalvesAgain(Plan &plan) {
  if (plan.halved.empty())
    return;
  const Seen seen(plan.halvesRatio);
  std::size_t splits = 0;
  for (const int index : plan.halved)
    splits += mostSplits(seen, plan, plan.items[static_cast<std::size_t>(index)]);
  if (plan.runs.size() + splits > TileList::kMostRuns)
    return;
  // Runs are read so far behind where they are written that they are there as long as they are needed.
  const int begin = plan.items[static_cast<std::size_t>(plan.halved.front())].runBegin;
  const int runsEnd = static_cast<int>(plan.runs.size()), away = static_cast<int>(splits);
  markTails(begin, plan);
  plan.runs.resize(plan.runs.size() + splits);
  abi::Run *const runs = plan.runs.data();
  std::copy_backward(runs + begin, runs + runsEnd, runs + runsEnd + away);
  Writer writer{seen, runs, plan.tails.data(), begin};
  const Plan::Tail *const tailsEnd = plan.tails.data() + plan.tails.size();
  for (const int index : plan.halved) {
    // Those of others stand between.
    while (writer.tail != tailsEnd && writer.tail->run < plan.items[static_cast<std::size_t>(index)].runBegin)
      ++writer.tail;
    writer.order(index, away, plan);
  }
  plan.runs.resize(static_cast<std::size_t>(writer.run));
}

std::size_t mostSplits(const Plan &plan) {
  if (plan.halved.empty())
    return 0;
  std::size_t splits = plan.tails.size(); // each may grow by Planner::kMostGrowth, a tile
  const Seen seen(plan.halvesRatio);
  for (const int index : plan.halved)
    splits += mostSplits(seen, plan, plan.items[static_cast<std::size_t>(index)]);
  return splits;
}

} // namespace deft::plan
