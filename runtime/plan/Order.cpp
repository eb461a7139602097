#include "runtime/plan/Order.h"

#include "runtime/plan/PagePieces.h"
#include "runtime/plan/RunWalk.h"
#include "runtime/plan/WriteAhead.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace deft::plan {

namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

void turnRuns(const abi::Item &item, Plan &plan) {
  const auto begin = plan.runs.own().begin() + item.runBegin;
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

/// Calls f(index of the item, its phase) for all items.
template <class F> void forEachItem(const config::Config &config, const Plan &plan, F f) {
  for (std::size_t p = 0; p < plan.phases.size(); ++p)
    for (int i = 0; i < plan.phases[p].itemCount; ++i)
      f(index(plan.phases[p].itemBegin + i), config.phases[p]);
}

/// The first tail of the next item: the tails of an item are consecutive, in the order of its runs.
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

/// The number of dealt tiles in which three of the four warps have a full group: further tokens of one warp
/// would leave tiles almost empty. `tokens` holds the tokens of each warp. 0: nothing is dealt.
int dealtTiles(const abi::Item &item, std::array<int, kDealtWarps> tokens) {
  std::sort(tokens.begin(), tokens.end());
  const auto tiles = divideUp(tokens[1], kGroupTokens);
  const bool areTooMany = divideUp(item.tokens, kTileTokens) + tiles > kMostDealtTiles;
  return tokens[0] == 0 || areTooMany ? 0 : static_cast<int>(tiles);
}

} // namespace

/// Divides an item's runs, in room for two numbers per run. Runs are sorted by their first readers, so runs
/// that only one warp sees are already sorted by warp.
RunOrder::Split RunOrder::splitRuns(std::span<const abi::Run> runs, int ratio, int *room) {
  int *common = room, *const firstOwned = room + runs.size(), *owned = firstOwned;
  // Counted by owner from -1 on: the end of its last run, and the tokens of owned runs up to there.
  std::array<std::ptrdiff_t, kDealtWarps + 2> ends{};
  std::array<int, kDealtWarps + 2> tokens{};
  int few = 0;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    // A branch on the owner would be mispredicted: the run goes to both lists, and the next overwrites it.
    const int owner = ownerIn(runs[r], ratio), isOwned = owner >= 0;
    *common = *owned = static_cast<int>(r);
    common += 1 - isOwned;
    owned += isOwned;
    few += isOwned != 0 ? runs[r].tokens : 0;
    ends[index(owner + 1)] = owned - firstOwned;
    tokens[index(owner + 1)] = few;
  }
  Split split{room, common, {firstOwned}, few, {}};
  for (std::size_t w = 1; w < ends.size(); ++w)
    split.owned[w] = std::max<const int *>(split.owned[w - 1], firstOwned + ends[w]);
  int before = 0;
  for (std::size_t w = 0; w < kDealtWarps; ++w) {
    const int upTo = std::max(before, tokens[w + 1]);
    split.tokens[w] = upTo - std::exchange(before, upTo);
  }
  return split;
}

/// Each tile is of the kind that is further behind, so that both kinds end together; if one kind's last
/// tokens do not fill a tile, the other does. Writes the runs from `to` on and returns the end.
abi::Run *RunOrder::mixItem(const abi::Run *from, const Split &split, const ItemForm &form, int tileTokens,
                            abi::Run *to) {
  RunWalk many(from, split.common, split.commonEnd), few(from, split.owned.front(), split.owned.back());
  std::int64_t leftMany = form.many, leftFew = form.few;
  std::int64_t owed = 0; // tokens owed to the few, multiplied by those of the many
  const int tokens = static_cast<int>(form.many + form.few);
  for (int begin = 0, end; begin < tokens; begin = end) {
    end = std::min(begin + tileTokens, tokens);
    const bool isFewsTurn = owed > 0;
    const auto most = std::min<std::int64_t>(isFewsTurn ? leftFew : leftMany, end - begin);
    const int turn = begin + static_cast<int>(most);
    (isFewsTurn ? few : many).fill(begin, turn, to);
    (isFewsTurn ? many : few).fill(turn, end, to);
    const int ofFew = isFewsTurn ? turn - begin : end - turn, ofMany = end - begin - ofFew;
    leftMany -= ofMany;
    leftFew -= ofFew;
    owed += ofMany * form.few - ofFew * form.many;
  }
  return to;
}

/// Alternates the item's runs after moving whole pages first. Its ends are not needed: it does not grow.
abi::Run *RunOrder::forwardAndMix(const abi::Item &item, const ItemForm &form, int ratio, int tileTokens,
                                  const abi::Run *from, abi::Run *to) {
  forwarded_.resize(std::max(forwarded_.size(), index(item.runCount) * mostParts(piece_)));
  endOfForwarded_.resize(std::max(endOfForwarded_.size(), index(item.runCount)));
  splitOfForwarded_.resize(2 * forwarded_.size());
  abi::Run *const first = forwarded_.data();
  const abi::Run *const end = forwardItem(item, from, RunWriter(from, endOfForwarded_.data(), first));
  return mixItem(first, splitRuns({first, end}, ratio, splitOfForwarded_.data()), form, tileTokens, to);
}

/// Nodes begin and end anywhere in a page. Whole pages come first, so that pieces of a tile are pieces of
/// pages, which family sm90 copies at once. All other tokens, which are copied one by one, come last.
abi::Run *RunOrder::forwardItem(const abi::Item &item, const abi::Run *from, RunWriter to) const {
  forEachPart(
      index(item.runCount), [](std::size_t i) { return static_cast<int>(i); }, from, growthOf(item), piece_,
      [&](int run, Part part, PartPlace where) { to.put(run, part, where); });
  return to.end();
}

/// Moves the tokens that only one warp sees behind the others, as many per warp as fit its tiles. Whole pages
/// come first within the common tokens and within each warp's. Returns the end.
abi::Run *RunOrder::dealItem(const abi::Item &item, const Split &split, int tiles, const abi::Run *from,
                             RunWriter to) {
  const auto forEachPartOf = [&](const int *which, const int *end, auto take) {
    forEachPart(
        index(end - which), [which](std::size_t i) { return which[i]; }, from, growthOf(item), piece_, take);
  };
  abi::Run *const first = to.end();
  // A local copy of the writer, to which no other code has a pointer, so its state stays in registers.
  const auto write = [&](auto f) {
    RunWriter writer = to;
    f(writer);
    to = writer;
  };
  const auto putParts = [&](const int *which, const int *end) {
    write([&](RunWriter &writer) {
      forEachPartOf(which, end, [&](int run, Part part, PartPlace where) { writer.put(run, part, where); });
    });
  };
  putParts(split.common, split.commonEnd);
  dealt_.resize(std::max(dealt_.size(), index(item.runCount) * mostParts(piece_) + 1));
  RunPart *next = dealt_.data();
  std::array<const RunPart *, kDealtWarps + 1> dealtBegins{next};
  std::array<bool, kDealtWarps> areAll; // whether all of a warp's tokens are dealt
  const int most = tiles * kGroupTokens;
  for (std::size_t w = 0; w < kDealtWarps; ++w) {
    const int *const begin = split.owned[w], *const end = split.owned[w + 1];
    areAll[w] = split.tokens[w] <= most;
    if (!areAll[w]) {
      write([&](RunWriter &writer) {
        int left = most;
        RunPart *dealt = next;
        forEachPartOf(begin, end, [&](int run, Part part, PartPlace) {
          const int middle = std::min(part.end, part.begin + left);
          *dealt = {run, {part.begin, middle}};
          dealt += middle != part.begin;
          left -= middle - part.begin;
          if (middle != part.end) // all tokens after the first one that is left over
            writer.put(run, {middle, part.end});
        });
        next = dealt;
      });
    }
    dealtBegins[w + 1] = next;
  }
  std::array<int, kDealtWarps> runBegins;
  for (std::size_t w = 0; w < kDealtWarps; ++w) {
    runBegins[w] = static_cast<int>(to.end() - first);
    if (areAll[w])
      putParts(split.owned[w], split.owned[w + 1]);
    write([&](RunWriter &writer) {
      for (const RunPart *one = dealtBegins[w], *const end = dealtBegins[w + 1]; one != end; ++one)
        writer.put(one->run, one->part);
    });
  }
  for (std::size_t w = 0; w < kDealtWarps; ++w)
    first[w].dealtBegin = runBegins[w];
  return to.end();
}

void RunOrder::apply(const config::Config &config, const VariantFacts &facts, Plan &plan,
                     kernels::Families families) {
  families_ = families;
  if (config.order == config::Order::Alternate)
    turnEveryOtherItem(plan);
  piece_ = kernels::readsByTensorMap(config, families) ? pieceOf(facts.pageSize) : 0;
  constexpr std::size_t kRoomIsCheap = 1 << 16;
  const bool isDealt = kernels::isDealt(config, families);
  if ((piece_ > 0 || isDealt) && plan.runs.size() <= kRoomIsCheap)
    plan.mostRuns = static_cast<int>(plan.runs.size() * mostParts(piece_) +
                                     (isDealt ? plan.items.size() * kDealtWarps : 0));
  if (piece_ == 0 && config.order != config::Order::Mixed)
    return;
  if (piece_ > 0)
    findGrowing(plan);
  if (findForms(config, facts.ratio, plan))
    rewrite(config, facts.ratio, plan);
}

/// For each run: whether it ends where a leaf may grow.
void RunOrder::findGrowing(const Plan &plan) {
  doesGrow_.assign(plan.runs.size(), 0);
  for (const Plan::Tail &tail : plan.tails)
    doesGrow_[index(tail.run)] = plan.leaves[index(tail.leaf)].canGrow != 0;
}

/// Returns whether any item changes.
bool RunOrder::findForms(const config::Config &config, int ratio, const Plan &plan) {
  forms_.assign(plan.items.size(), {});
  if (config.order == config::Order::Mixed)
    findShares(config, ratio, plan);
  bool change = false;
  forEachItem(config, plan, [&](std::size_t i, const config::PhaseConfig &phase) {
    const abi::Item &item = plan.items[i];
    ItemForm &form = forms_[i];
    if (piece_ > 0 && kernels::familyOf(phase, families_).readsByTensorMap && !form.isDealt()) {
      const char *const doesGrow = growthOf(item);
      // Turns move runs once more, so only runs that consist of whole pieces keep these in place.
      form.isMisplaced = form.hasManyAndFew() ? !areOnlyPieces(runsOf(item, plan), doesGrow)
                                              : !areInPlace(runsOf(item, plan), doesGrow, piece_);
    }
    change |= form.isChanged();
  });
  return change;
}

/// For `mixed`. If some items are dealt, an item with too few rows for dealing does not change: it is the
/// smallest and the last, and leaves cannot grow in a plan with alternating items.
void RunOrder::findShares(const config::Config &config, int ratio, const Plan &plan) {
  split_.resize(std::max(split_.size(), 2 * plan.runs.size()));
  splits_.resize(plan.items.size());
  bool isAnyDealt = false;
  forEachItem(config, plan, [&](std::size_t i, const config::PhaseConfig &phase) {
    const abi::Item &item = plan.items[i];
    const Split &split = splits_[i] = splitRuns(runsOf(item, plan), ratio, split_.data() + 2 * item.runBegin);
    ItemForm &form = forms_[i];
    form.few = split.few;
    form.many = item.tokens - split.few;
    if (form.hasManyAndFew() && kernels::isDealt(phase, config.order, families_) &&
        haveAllWarps(item.queryCount * ratio))
      form.dealtTiles = dealtTiles(item, split.tokens);
    isAnyDealt |= form.isDealt();
  });
  if (isAnyDealt)
    for (std::size_t i = 0; i < plan.items.size(); ++i)
      if (haveFewerWarps(plan.items[i].queryCount * ratio))
        forms_[i] = {};
}

/// The most runs that the item may have afterwards.
std::size_t RunOrder::mostRuns(const abi::Item &item, const config::PhaseConfig &phase,
                               const ItemForm &form) const {
  const bool areInParts = form.isMisplaced || form.isDealt();
  std::size_t runs = index(item.runCount) * (areInParts ? mostParts(piece_) : 1);
  if (form.isDealt()) // one run of each warp may be cut in two
    runs += kDealtWarps;
  else if (form.hasManyAndFew()) // each turn may cut a run of the other kind in two
    runs += index(2 * divideUp(std::min(form.many, form.few), phase.tileKv) + 1);
  return runs;
}

/// Rewrites the runs of all items, one item after the other.
void RunOrder::rewrite(const config::Config &config, int ratio, Plan &plan) {
  former_.swap(plan.runs.own());
  endOf_.resize(former_.size());
  std::size_t most = 0;
  forEachItem(config, plan, [&](std::size_t i, const config::PhaseConfig &phase) {
    ItemForm &form = forms_[i];
    form.mostRuns = mostRuns(plan.items[i], phase, form);
    most += form.mostRuns;
  });
  abi::Run *const all = plan.runs.renew(most), *to = all;
  WriteAhead ahead(all, most);
  forEachItem(config, plan, [&](std::size_t i, const config::PhaseConfig &phase) {
    abi::Item &item = plan.items[i];
    ahead.ask(to, forms_[i].mostRuns);
    abi::Run *const end = rewriteItem(i, item, ratio, phase.tileKv, to);
    item.runBegin = static_cast<int>(to - all);
    item.runCount = static_cast<int>(end - to);
    if (forms_[i].isDealt())
      countDealt(item, {to, end});
    to = end;
  });
  plan.runs.cutTo(index(to - all));
  moveTails(plan);
}

/// Rewrites the i-th item.
abi::Run *RunOrder::rewriteItem(std::size_t i, const abi::Item &item, int ratio, int tileTokens,
                                abi::Run *to) {
  const abi::Run *const from = former_.data() + item.runBegin;
  RunWriter writer(from, endOf_.data() + item.runBegin, to);
  const ItemForm &form = forms_[i];
  if (form.isDealt())
    return dealItem(item, splits_[i], form.dealtTiles, from, writer);
  if (form.hasManyAndFew())
    return form.isMisplaced ? forwardAndMix(item, form, ratio, tileTokens, from, to)
                            : mixItem(from, splits_[i], form, tileTokens, to);
  if (form.isMisplaced)
    return forwardItem(item, from, writer);
  writer.putAll(item.runCount);
  return writer.end();
}

/// Moves tails to the runs that now end at their old ends. If a leaf of an alternating item grew, tiles would
/// contain tokens of both kinds, so such a leaf must not grow.
void RunOrder::moveTails(Plan &plan) const {
  const auto end = plan.tails.end();
  auto kept = plan.tails.begin();
  for (auto tail = plan.tails.begin(); tail != end;) {
    const int item = tail->item;
    const bool isMixed = forms_[index(item)].isMixed();
    const auto first = kept;
    bool isSorted = true;
    for (int before = -1; tail != end && tail->item == item; ++tail) {
      if (isMixed) {
        plan.leaves[index(tail->leaf)].canGrow = 0;
        continue;
      }
      const int run = static_cast<int>(endOf_[index(tail->run)] - plan.runs.data());
      *kept++ = {tail->leaf, item, run};
      isSorted &= before < run;
      before = run;
    }
    if (!isSorted)
      std::sort(first, kept, [](const Plan::Tail &a, const Plan::Tail &b) { return a.run < b.run; });
  }
  plan.tails.erase(kept, end);
}

} // namespace deft::plan
