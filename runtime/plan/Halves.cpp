#include "runtime/plan/Halves.h"

#include "runtime/plan/Tiles.h"

#include <algorithm>

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

/// What is left of an item's runs that one half alone sees.
struct Own {
  const abi::Run *run;
  int used; ///< tokens of it
  int left; ///< tokens in all
};

} // namespace

bool Halves::concern(const config::Config &config) {
  return std::any_of(config.phases.begin(), config.phases.end(), [](const config::PhaseConfig &phase) {
    return phase.family == config::Family::Sm90 && phase.tileQ > kHalfRows;
  });
}

/// Returns how many runs there may be more by splits.
std::size_t Halves::findSplits(int ratio, const Plan &plan) {
  splits_.clear();
  const Seen seen(ratio);
  std::size_t more = 0;
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const abi::Item &item = plan.items[i];
    if (item.queryCount * ratio <= kHalfRows)
      continue;
    int tokens[3] = {};
    const abi::Run *const runs = plan.runs.data() + item.runBegin;
    for (int r = 0; r < item.runCount; ++r)
      tokens[seen.by(runs[r])] += runs[r].tokens;
    if (tokens[kFirst] == 0 || tokens[kSecond] == 0)
      continue;
    splits_.push_back({static_cast<int>(i), {tokens[kFirst], tokens[kSecond]}});
    // A turn ends in one run; the half with less has no more turns than that, the other one more, and one
    // fills the tile of the common runs.
    more += static_cast<std::size_t>(std::min(tokens[kFirst], tokens[kSecond])) / kTileTokens * 2 + 4;
  }
  return more;
}

/// Where the next run of an item goes, and the next tail. A run that is read has one more than its leaf in
/// `reserved0`, or 0.
struct Halves::Writer {
  abi::Run *const runs;
  Plan::Tail *tail;
  int run;
  int item;
  int tokens = 0; ///< of the item so far

  void add(const abi::Run &from, int skipped, int count) {
    if (from.reserved0 > 0 && skipped + count == from.tokens)
      *tail++ = {from.reserved0 - 1, item, run};
    runs[run++] = {tokens,     count,           from.location + skipped, from.position + skipped,
                   from.depth, from.queryBegin, from.queryEnd,           0};
    tokens += count;
  }

  /// So many tokens of those that one half alone sees.
  void take(const Seen &seen, Seers half, int count, Own &own) {
    own.left -= count;
    while (count > 0) {
      while (seen.by(*own.run) != half)
        ++own.run;
      const int piece = std::min(count, own.run->tokens - own.used);
      add(*own.run, own.used, piece);
      own.used += piece;
      count -= piece;
      if (own.used == own.run->tokens) {
        ++own.run;
        own.used = 0;
      }
    }
  }

  void order(const Seen &seen, const abi::Run *from, int count, const int (&tokensOf)[2]) {
    for (int r = 0; r < count; ++r)
      if (seen.by(from[r]) == kBoth)
        add(from[r], 0, from[r].tokens);
    Own own[2] = {{from, 0, tokensOf[0]}, {from, 0, tokensOf[1]}};
    int turn = own[0].left >= own[1].left ? kFirst : kSecond;
    const auto takeOf = [&](int half, int most) {
      take(seen, static_cast<Seers>(half), std::min(most, own[half].left), own[half]);
    };
    takeOf(turn, (kTileTokens - tokens % kTileTokens) % kTileTokens);
    for (; own[0].left > 0 && own[1].left > 0; turn = 1 - turn)
      takeOf(turn, kTileTokens);
    for (int half = 0; half < 2; ++half)
      takeOf(half, own[half].left);
  }
};

void Halves::order(int ratio, Plan &plan) {
  const std::size_t most = plan.runs.size() + findSplits(ratio, plan);
  if (splits_.empty() || most > TileList::kMostRuns)
    return;
  // Both take turns, so both get the room now.
  plan.runs.reserve(most);
  runs_.resize(most);
  const Seen seen(ratio);
  const abi::Run *const from = plan.runs.data();
  Plan::Tail *tail = plan.tails.data(), *const tailsEnd = tail + plan.tails.size();
  int taken = 0, written = 0; // runs
  std::size_t item = 0;
  /// Items as they are, up to where `end` begins.
  const auto keep = [&](std::size_t end, int runEnd) {
    const int shift = written - taken;
    std::copy(from + taken, from + runEnd, runs_.data() + written);
    written += runEnd - taken;
    taken = runEnd;
    for (; item < end; ++item)
      plan.items[item].runBegin += shift;
    for (; tail != tailsEnd && tail->run < runEnd; ++tail)
      tail->run += shift;
  };
  for (const Split &split : splits_) {
    abi::Item &ordered = plan.items[static_cast<std::size_t>(split.item)];
    keep(static_cast<std::size_t>(split.item), ordered.runBegin);
    taken += ordered.runCount;
    Plan::Tail *const firstTail = tail;
    for (; tail != tailsEnd && tail->run < taken; ++tail)
      plan.runs[static_cast<std::size_t>(tail->run)].reserved0 = tail->leaf + 1;
    Writer writer{runs_.data(), firstTail, written, split.item};
    writer.order(seen, from + ordered.runBegin, ordered.runCount, split.own);
    ordered.runBegin = written;
    ordered.runCount = writer.run - written;
    written = writer.run;
    ++item;
  }
  keep(plan.items.size(), static_cast<int>(plan.runs.size()));
  plan.runs.swap(runs_);
  plan.runs.resize(static_cast<std::size_t>(written));
}

} // namespace deft::plan
