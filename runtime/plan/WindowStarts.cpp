#include "runtime/plan/WindowStarts.h"

#include "runtime/plan/Deal.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace deft::plan {

namespace {

std::span<const int> positionsOf(const Plan &plan, int queryBegin, int queryEnd) {
  return std::span(plan.queryPos)
      .subspan(static_cast<std::size_t>(queryBegin), static_cast<std::size_t>(queryEnd - queryBegin));
}
std::span<const int> positionsOf(const Plan &plan, const Plan::WindowHead &head) {
  const int first = plan.items[static_cast<std::size_t>(head.item)].queryBegin;
  const abi::Run &run = plan.runs[static_cast<std::size_t>(head.run)];
  return positionsOf(plan, first + run.queryBegin, first + run.queryEnd);
}

/// Whether one of the run's readers sees nothing of it after all have gained `growth` tokens.
bool losesAReader(const Plan &plan, const Plan::WindowHead &head, int growth) {
  const abi::Run &run = plan.runs[static_cast<std::size_t>(head.run)];
  const std::span<const int> readers = positionsOf(plan, head);
  return std::any_of(readers.begin(), readers.end(), [&](int qPos) {
    return plan.reach.firstFrom(qPos + growth, run.position) >= run.position + run.tokens;
  });
}

/// The beginning of a run or a start; those of one node have the same first number. If a hook of keys
/// provides positions, nodes may share places of the cache: their windows move separately.
template <class Beginning> std::pair<int, int> placeOf(const Beginning &one) {
  return {one.location - one.position, one.location};
}
template <class A, class B> bool areOfOneNode(const A &a, const B &b) {
  return placeOf(a).first == placeOf(b).first;
}

/// Heads at the same place of the cache and of the path belong to one window.
void groupHeads(Plan &plan) {
  const abi::Run *const runs = plan.runs.data();
  std::sort(plan.windowHeads.begin(), plan.windowHeads.end(),
            [&](const Plan::WindowHead &a, const Plan::WindowHead &b) {
              return std::tuple(placeOf(runs[a.run]), a.item, a.run) <
                     std::tuple(placeOf(runs[b.run]), b.item, b.run);
            });
  for (std::size_t h = 0; h < plan.windowHeads.size(); ++h) {
    const Plan::WindowHead &head = plan.windowHeads[h];
    const abi::Run &run = runs[head.run];
    const int first = plan.items[static_cast<std::size_t>(head.item)].queryBegin;
    const Plan::WindowStart own{run.location,
                                run.position,
                                first + run.queryBegin,
                                first + run.queryEnd,
                                static_cast<int>(h),
                                static_cast<int>(h) + 1,
                                run.tokens,
                                run.tokens,
                                0,
                                0,
                                false};
    if (plan.windowStarts.empty() || placeOf(plan.windowStarts.back()) != placeOf(run)) {
      plan.windowStarts.push_back(own);
      continue;
    }
    Plan::WindowStart &start = plan.windowStarts.back();
    start.queryBegin = std::min(start.queryBegin, own.queryBegin);
    start.queryEnd = std::max(start.queryEnd, own.queryEnd);
    start.headEnd = own.headEnd;
    start.shortest = std::min(start.shortest, own.shortest);
    start.longest = std::max(start.longest, own.longest);
  }
}

/// Links overlapping starts, so that each token counts once in any number of windows.
void linkStarts(Plan &plan) {
  std::vector<Plan::WindowStart> &starts = plan.windowStarts;
  int first = 0, end = 0;
  for (int s = 0; s < static_cast<int>(starts.size()); ++s) {
    Plan::WindowStart &start = starts[static_cast<std::size_t>(s)];
    if (start.location >= end || !areOfOneNode(start, starts[static_cast<std::size_t>(first)])) {
      first = s;
      end = 0;
    }
    start.first = first;
    start.others = start.headBegin - start.headEnd; // the loop below meets these as well
    end = std::max(end, start.location + start.longest);
  }
  const auto isBefore = [](const Plan::WindowStart &start, const std::pair<int, int> &place) {
    return placeOf(start) < place;
  };
  for (const abi::Run &run : plan.runs) {
    const auto own = std::lower_bound(starts.begin(), starts.end(), placeOf(run), isBefore);
    if (own != starts.end() && placeOf(*own) == placeOf(run)) {
      ++own->others;
      continue;
    }
    for (auto start = own;
         start != starts.end() && areOfOneNode(*start, run) && start->location < run.location + run.tokens;
         ++start)
      start->isInside = true;
  }
  for (Plan::WindowStart &start : starts)
    start.isInside |= start.others > 0;
}

/// The number of tokens that no query reads any more.
int lostTokens(const Plan &plan, std::span<const int> moved) {
  const std::vector<Plan::WindowStart> &starts = plan.windowStarts;
  int lost = 0;
  for (std::size_t s = 0; s < starts.size();) {
    const std::size_t first = s;
    int location = Reach::kNowhere;
    bool isInside = false;
    for (; s < starts.size() && starts[s].first == static_cast<int>(first); ++s) {
      location = std::min(location, starts[s].location + moved[s]);
      isInside |= starts[s].isInside;
    }
    lost += isInside ? 0 : location - starts[first].location;
  }
  return lost;
}

} // namespace

void findWindowStarts(int mostGrowth, Plan &plan) {
  plan.windowStarts.clear();
  plan.windowHeads.clear();
  if (!plan.reach.hasRisingStart() || plan.queryPos.empty())
    return;
  const int last = *std::max_element(plan.queryPos.begin(), plan.queryPos.end());
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const abi::Item &item = plan.items[i];
    for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
      const abi::Run &run = plan.runs[static_cast<std::size_t>(r)];
      if (run.slope != 0) // its first tokens may be all that its first readers read in the item
        continue;
      const auto lose = [&](std::span<const int> readers) {
        return plan.reach.firstFrom(readers, mostGrowth, run.position) > run.position;
      };
      const Plan::WindowHead head{static_cast<int>(i), r};
      // If the last of all queries sees a run's beginning, most runs have a reader that does.
      if (lose({&last, 1}) &&
          (plan.strictChunk > 0 ? losesAReader(plan, head, mostGrowth) : lose(positionsOf(plan, head))))
        plan.windowHeads.push_back(head);
    }
  }
  if (plan.strictChunk > 0)
    return;
  groupHeads(plan);
  linkStarts(plan);
}

bool findWindowMoves(const Plan &plan, std::span<int> moved) {
  if (plan.strictChunk > 0) // its chunks stay whole, and contain those that show their readers something
    return std::none_of(plan.windowHeads.begin(), plan.windowHeads.end(),
                        [&](const Plan::WindowHead &head) { return losesAReader(plan, head, 0); });
  for (std::size_t s = 0; s < plan.windowStarts.size(); ++s) {
    const Plan::WindowStart &start = plan.windowStarts[s];
    const int first = plan.reach.firstFrom(positionsOf(plan, start.queryBegin, start.queryEnd), /*growth=*/0,
                                           start.position);
    if (first == Reach::kNowhere || first - start.position >= start.shortest)
      return false;
    const int location = (start.location + first - start.position) & -plan.trimStep;
    moved[s] = std::max(location - start.location, 0);
  }
  return true;
}

int moveWindowStarts(Plan &plan, std::span<const int> allMoved) {
  if (std::all_of(allMoved.begin(), allMoved.end(), [](int moved) { return moved == 0; }))
    return 0;
  abi::Run *const runs = plan.runs.toChange().data();
  plan.readTokens -= lostTokens(plan, allMoved);
  int most = 0;
  for (std::size_t s = 0; s < plan.windowStarts.size(); ++s) {
    Plan::WindowStart &start = plan.windowStarts[s];
    const int moved = allMoved[s];
    if (moved == 0)
      continue;
    for (int h = start.headBegin; h < start.headEnd; ++h) {
      const Plan::WindowHead &head = plan.windowHeads[static_cast<std::size_t>(h)];
      abi::Item &item = plan.items[static_cast<std::size_t>(head.item)];
      runs[head.run].location += moved;
      runs[head.run].position += moved;
      runs[head.run].tokens -= moved;
      item.tokens -= moved;
      for (int r = head.run + 1; r < item.runBegin + item.runCount; ++r)
        runs[r].begin -= moved;
      if (item.dealtTiles > 0)
        countDealt(item, {runs + item.runBegin, static_cast<std::size_t>(item.runCount)});
    }
    most += moved * (start.headEnd - start.headBegin); // one item may have all of these
    start.location += moved;
    start.position += moved;
    start.shortest -= moved;
    start.longest -= moved;
  }
  return most;
}

} // namespace deft::plan
