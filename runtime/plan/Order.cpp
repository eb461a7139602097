#include "runtime/plan/Order.h"

#include "runtime/plan/PagePieces.h"
#include "runtime/plan/RunWalk.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

namespace deft::plan {

namespace {

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

std::span<const abi::Run> runsOf(const abi::Item &item, const Plan &plan) {
  return {plan.runs.data() + item.runBegin, index(item.runCount)};
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

std::int64_t divideUp(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// So many dealt tiles give a group to three of the four warps in each: what a warp has beyond that would
/// leave tiles all but empty. `tokens` are those of each warp. 0: nothing is dealt.
int dealtTiles(const abi::Item &item, std::array<int, kDealtWarps> tokens) {
  std::sort(tokens.begin(), tokens.end());
  const auto tiles = divideUp(tokens[1], kGroupTokens);
  const bool areTooMany = divideUp(item.tokens, kTileTokens) + tiles > kMostDealtTiles;
  return tokens[0] == 0 || areTooMany ? 0 : static_cast<int>(tiles);
}

} // namespace

/// Sorts the item's runs by the bucket of their owner, and gives where buckets begin in sorted_, and the end.
template <std::size_t kBuckets, class BucketOf>
std::array<int, kBuckets + 1> RunOrder::sortRuns(const abi::Item &item, BucketOf bucketOf) {
  const int *const owners = owners_.data() + item.runBegin;
  std::array<int, kBuckets + 2> begins{}; // a place further on until they are filled
  for (int r = 0; r < item.runCount; ++r)
    ++begins[bucketOf(owners[r]) + 2];
  for (std::size_t b = 2; b < begins.size(); ++b)
    begins[b] += begins[b - 1];
  sorted_.resize(std::max(sorted_.size(), index(item.runCount)));
  for (int r = 0; r < item.runCount; ++r)
    sorted_[index(begins[bucketOf(owners[r]) + 1]++)] = r;
  std::array<int, kBuckets + 1> result;
  std::copy_n(begins.begin(), result.size(), result.begin());
  return result;
}

/// Each tile is of the kind that is behind, so that both kinds end together; what the last tokens of one
/// leave of a tile is filled by the other. Writes the runs from `to` on, and gives the end.
abi::Run *RunOrder::mixItem(const abi::Item &item, const Shares &shares, int tileTokens, const abi::Run *from,
                            abi::Run *to) {
  const auto begins = sortRuns<2>(item, [](int owner) { return index(owner >= 0 ? 1 : 0); });
  const int *const sorted = sorted_.data();
  RunWalk many(from, sorted, sorted + begins[1]), few(from, sorted + begins[1], sorted + begins[2]);
  Shares left = shares;
  std::int64_t owed = 0; // to the few: tokens, times those of many
  for (int begin = 0, end; begin < item.tokens; begin = end) {
    end = std::min(begin + tileTokens, item.tokens);
    const bool isFewsTurn = owed > 0;
    const auto most = std::min<std::int64_t>(isFewsTurn ? left.few : left.many, end - begin);
    const int split = begin + static_cast<int>(most);
    (isFewsTurn ? few : many).fill(begin, split, to);
    (isFewsTurn ? many : few).fill(split, end, to);
    const Shares given = isFewsTurn ? Shares{end - split, split - begin} : Shares{split - begin, end - split};
    left.many -= given.many;
    left.few -= given.few;
    owed += given.many * shares.few - given.few * shares.many;
  }
  return to;
}

/// Appends what the runs have in the order in which it is read: whole pages first.
void RunOrder::listParts(const abi::Item &item, std::span<const int> which, const abi::Run *runs) {
  if (piece_ == 0) {
    for (const int r : which)
      parts_.push_back({r, {0, runs[r].tokens}});
    return;
  }
  const auto add = [](std::vector<RunPart> &parts, int r, Part part) {
    if (!part.isEmpty())
      parts.push_back({r, part});
  };
  groups_.clear();
  rest_.clear();
  for (const int r : which) {
    // What grows is not to move others' pages: its last piece is never a whole one.
    const int most = runs[r].tokens - doesGrow_[index(item.runBegin + r)];
    const Part groups = wholePieces(runs[r], most, kGroupTokens, runs[r].tokens);
    if (piece_ == kGroupTokens) {
      add(parts_, r, groups);
    } else {
      const Part whole = wholePieces(runs[r], most, piece_, groups.end);
      add(parts_, r, whole);
      add(groups_, r, {groups.begin, whole.begin});
      add(groups_, r, {whole.end, groups.end});
    }
    add(rest_, r, {0, groups.begin});
    add(rest_, r, {groups.end, runs[r].tokens});
  }
  parts_.insert(parts_.end(), groups_.begin(), groups_.end());
  parts_.insert(parts_.end(), rest_.begin(), rest_.end());
}

/// What each warp alone sees stands behind the rest, as many tokens as it has in so many tiles. Gives the
/// end.
abi::Run *RunOrder::dealItem(const abi::Item &item, int tiles, const abi::Run *from, RunWriter to) {
  const auto begins = sortRuns<1 + kDealtWarps>(item, [](int owner) { return index(owner + 1); });
  parts_.clear();
  std::array<std::size_t, 2 + kDealtWarps> firstPart{}; // of many, of each warp, and the end
  for (std::size_t b = 0; b + 1 < begins.size(); ++b) {
    listParts(item, std::span(sorted_).subspan(index(begins[b]), index(begins[b + 1] - begins[b])), from);
    firstPart[b + 1] = parts_.size();
  }
  const auto partsOf = [&](std::size_t w) {
    return std::span(parts_).subspan(firstPart[w + 1], firstPart[w + 2] - firstPart[w + 1]);
  };
  abi::Run *const first = to.end();
  for (std::size_t at = 0; at < firstPart[1]; ++at)
    to.put(parts_[at].run, parts_[at].part);
  std::array<std::size_t, kDealtWarps> dealt; // parts of each warp; the last of them may have been cut
  for (std::size_t w = 0; w < kDealtWarps; ++w) {
    const std::span<RunPart> parts = partsOf(w);
    int left = tiles * kGroupTokens;
    std::size_t at = 0;
    for (; at < parts.size() && left > 0; ++at) {
      Part &part = parts[at].part;
      const int end = std::min(part.end, part.begin + left);
      left -= end - part.begin;
      to.put(parts[at].run, {end, part.end});
      part.end = end;
    }
    dealt[w] = at;
    for (; at < parts.size(); ++at)
      to.put(parts[at].run, parts[at].part);
  }
  std::array<int, kDealtWarps> dealtBegin;
  for (std::size_t w = 0; w < kDealtWarps; ++w) {
    dealtBegin[w] = static_cast<int>(to.end() - first);
    for (const RunPart &one : partsOf(w).first(dealt[w]))
      to.put(one.run, one.part);
  }
  for (std::size_t w = 0; w < kDealtWarps; ++w)
    first[w].dealtBegin = dealtBegin[w];
  return to.end();
}

void RunOrder::apply(const config::Config &config, const VariantFacts &facts, Plan &plan) {
  const bool hasSm90 =
      std::any_of(config.phases.begin(), config.phases.end(),
                  [](const config::PhaseConfig &phase) { return phase.family == config::Family::Sm90; });
  piece_ = hasSm90 ? pieceOf(facts.pageSize) : 0;
  const bool isMixed = config.order == config::Order::Mixed;
  if (config.order == config::Order::Alternate)
    turnEveryOtherItem(plan);
  shares_.assign(plan.items.size(), {});
  const bool changes = isMixed && findShares(config, facts.ratio, plan);
  const bool haveMoved = piece_ > 0 && bringPagesForward(config, plan);
  if (!changes)
    return;
  if (haveMoved) {
    findOwners(facts.ratio, plan);
    findGrowing(plan);
  }
  mix(config, plan);
}

void RunOrder::findOwners(int ratio, const Plan &plan) {
  owners_.resize(plan.runs.size());
  for (std::size_t r = 0; r < plan.runs.size(); ++r)
    owners_[r] = ownerOf(plan.runs[r], ratio);
}

/// Of items whose runs are in path order. Gives whether any of them are to change.
bool RunOrder::findShares(const config::Config &config, int ratio, const Plan &plan) {
  findOwners(ratio, plan);
  bool change = false;
  forEachItem(config, plan, [&](std::size_t i, const config::PhaseConfig &phase) {
    const abi::Item &item = plan.items[i];
    const std::span<const abi::Run> runs = runsOf(item, plan);
    const int *owner = owners_.data() + item.runBegin;
    const bool canDeal = config::isDealt(phase, config.order) && haveAllWarps(item.queryCount * ratio);
    std::array<int, kDealtWarps> ofWarps{};
    int few = 0;
    for (const abi::Run &run : runs) {
      if (*owner >= 0)
        few += run.tokens;
      if (*owner >= 0 && canDeal)
        ofWarps[index(*owner)] += run.tokens;
      ++owner;
    }
    Shares &own = shares_[i];
    own.few = few;
    own.many = item.tokens - few;
    if (canDeal && own.areBoth())
      own.dealtTiles = dealtTiles(item, ofWarps);
    change |= own.areBoth();
  });
  return change;
}

/// Of each run, whether it ends where a leaf may grow.
void RunOrder::findGrowing(const Plan &plan) {
  doesGrow_.assign(plan.runs.size(), 0);
  for (const Plan::Tail &tail : plan.tails)
    doesGrow_[index(tail.run)] = plan.leaves[index(tail.leaf)].canGrow != 0;
}

/// Writes the runs of all items anew: write(item's index, its phase, its former runs, a writer) gives where
/// they end, and writes no more than most(item's index, its phase).
template <class Most, class Write>
void RunOrder::rewriteRuns(const config::Config &config, Plan &plan, Most most, Write write) {
  former_.swap(plan.runs);
  endOf_.resize(former_.size());
  std::size_t mostOfAll = 0;
  forEachItem(config, plan,
              [&](std::size_t i, const config::PhaseConfig &phase) { mostOfAll += most(i, phase); });
  plan.runs.resize(std::max(plan.runs.size(), mostOfAll)); // and not cleared: what is there is written over
  abi::Run *const all = plan.runs.data(), *to = all;
  forEachItem(config, plan, [&](std::size_t i, const config::PhaseConfig &phase) {
    abi::Item &item = plan.items[i];
    const abi::Run *const from = former_.data() + item.runBegin;
    abi::Run *const end = write(i, phase, from, RunWriter(from, endOf_.data() + item.runBegin, all, to));
    item.runBegin = static_cast<int>(to - all);
    item.runCount = static_cast<int>(end - to);
    to = end;
  });
  plan.runs.resize(index(to - all));
}

/// Nodes begin and end anywhere in a page. What they have of whole pages comes first, so that a tile's pieces
/// are pages' pieces, which family sm90 copies at once; the rest, token by token, comes last.
/// Items whose tokens are dealt have theirs brought forward by that. Gives whether any have moved.
bool RunOrder::bringPagesForward(const config::Config &config, Plan &plan) {
  findGrowing(plan);
  isMisplaced_.assign(plan.items.size(), 0);
  bool areMisplaced = false;
  forEachItem(config, plan, [&](std::size_t i, const config::PhaseConfig &phase) {
    if (phase.family != config::Family::Sm90 || shares_[i].areDealt())
      return;
    const std::span<const abi::Run> runs = runsOf(plan.items[i], plan);
    const char *const doesGrow = doesGrow_.data() + plan.items[i].runBegin;
    // Runs that are to be cut into tiles go on there.
    const bool areRight =
        shares_[i].areBoth() ? areOnlyPieces(runs, doesGrow) : areInPlace(runs, doesGrow, piece_);
    isMisplaced_[i] = !areRight;
    areMisplaced |= !areRight;
  });
  constexpr std::size_t kRoomIsCheap = 1 << 16;
  if (plan.runs.size() <= kRoomIsCheap)
    plan.mostRuns = static_cast<int>(plan.runs.size() * mostParts());
  if (!areMisplaced)
    return false;
  const auto mostOf = [&](std::size_t i, const config::PhaseConfig &) {
    return index(plan.items[i].runCount) * (isMisplaced_[i] ? mostParts() : 1);
  };
  rewriteRuns(config, plan, mostOf,
              [&](std::size_t i, const config::PhaseConfig &, const abi::Run *runs, RunWriter to) {
                const abi::Item &item = plan.items[i];
                if (!isMisplaced_[i]) {
                  to.putFirst(item.runCount);
                  return to.end();
                }
                sorted_.resize(std::max(sorted_.size(), index(item.runCount)));
                std::iota(sorted_.begin(), sorted_.begin() + item.runCount, 0);
                parts_.clear();
                listParts(item, std::span(sorted_).first(index(item.runCount)), runs);
                for (const RunPart &one : parts_)
                  to.put(one.run, one.part);
                return to.end();
              });
  moveTails(plan);
  return true;
}

/// To the runs that end where theirs did.
void RunOrder::moveTails(Plan &plan) {
  for (auto tail = plan.tails.begin(); tail != plan.tails.end();) {
    const auto end = endOfItem(tail, plan);
    for (auto one = tail; one != end; ++one)
      one->run = endOf_[index(one->run)];
    const auto isBefore = [](const Plan::Tail &a, const Plan::Tail &b) { return a.run < b.run; };
    if (!std::is_sorted(tail, end, isBefore))
      std::sort(tail, end, isBefore);
    tail = end;
  }
}

void RunOrder::mix(const config::Config &config, Plan &plan) {
  const auto mostOf = [&](std::size_t i, const config::PhaseConfig &phase) {
    const Shares &own = shares_[i];
    const std::size_t runs = index(plan.items[i].runCount);
    if (own.areDealt()) // one of each warp may be cut in two
      return runs * mostParts() + kDealtWarps;
    if (own.areBoth()) // each turn may cut a run of the other kind in two
      return runs + index(2 * divideUp(std::min(own.many, own.few), phase.tileKv) + 1);
    return runs;
  };
  rewriteRuns(config, plan, mostOf,
              [&](std::size_t i, const config::PhaseConfig &phase, const abi::Run *from, RunWriter to) {
                const abi::Item &item = plan.items[i];
                const Shares &own = shares_[i];
                if (own.areMixed())
                  return mixItem(item, own, phase.tileKv, from, to.end());
                if (own.areDealt())
                  return dealItem(item, own.dealtTiles, from, to);
                to.putFirst(item.runCount);
                return to.end();
              });
  for (std::size_t i = 0; i < plan.items.size(); ++i)
    if (abi::Item &item = plan.items[i]; shares_[i].areDealt())
      countDealt(item, runsOf(item, plan));
  // Where a leaf of a mixed item grew, tiles would have tokens of both kinds.
  const auto isOfMixed = [&](const Plan::Tail &tail) { return shares_[index(tail.item)].areMixed(); };
  for (const Plan::Tail &tail : plan.tails)
    if (isOfMixed(tail))
      plan.leaves[index(tail.leaf)].canGrow = 0;
  std::erase_if(plan.tails, isOfMixed);
  moveTails(plan);
}

} // namespace deft::plan
