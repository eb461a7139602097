#include "runtime/plan/report/HiddenParts.h"

#include "runtime/plan/Slope.h"

#include <algorithm>

namespace deft::plan {
namespace {

class Finder {
public:
  Finder(const PlanReport &report, const HiddenLimits &limits)
      : report_(report), limits_(limits), questions_(limits.mostQuestions) {}

  std::vector<HiddenPart> find() {
    std::vector<Positions> seen, before;
    for (const abi::Item &item : report_.plan.items)
      for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
        const abi::Run &run = report_.plan.runs[r];
        const int begin = item.queryBegin + run.queryBegin;
        const int end = std::min(item.queryBegin + run.queryEnd, limits_.mostQueries);
        int first = begin;
        for (int query = begin; query <= end; ++query) {
          if (query < end)
            clip(partSeen(run, query - item.queryBegin), report_.nodeOfRun[r], query, seen);
          if (query > begin && (query == end || seen != before || run.slope != 0)) {
            addGaps(partSeen(run, first - item.queryBegin), report_.nodeOfRun[r], before, first, query);
            first = query;
          }
          before.swap(seen);
        }
      }
    return std::move(parts_);
  }

private:
  /// What one of its readers sees of a run where no mask hides.
  static abi::Run partSeen(const abi::Run &run, int query) {
    abi::Run part = run;
    part.tokens = tokensSeen(run, query);
    return part;
  }

  void clip(const abi::Run &run, int node, int query, std::vector<Positions> &seen) {
    const int qPos = report_.plan.queryPos[query];
    if (report_.shows)
      return sample(run, node, query, seen);
    report_.facts.reach.find(qPos, qPos, seen);
    for (Positions &stretch : seen)
      stretch = {std::clamp(stretch.begin, run.position, run.position + run.tokens),
                 std::clamp(stretch.end, run.position, run.position + run.tokens)};
    std::erase_if(seen, [](const Positions &stretch) { return stretch.begin == stretch.end; });
  }

  void sample(const abi::Run &run, int node, int query, std::vector<Positions> &seen) {
    seen.clear();
    const int step = limits_.step ? std::max(1, limits_.step(node)) : 1;
    const int end = run.position + run.tokens;
    for (int at = run.position; at < end; at += step) {
      const MaskSite site{report_.plan.callerIndex[query], report_.plan.queryPos[query], at, run.depth};
      if (--questions_ >= 0 && !report_.shows(site))
        continue;
      const int next = std::min(at + step, end);
      if (!seen.empty() && seen.back().end == at)
        seen.back().end = next;
      else
        seen.push_back({at, next});
    }
  }

  /// The run's tokens beside those that are seen, for the queries [begin, end).
  void addGaps(const abi::Run &run, int node, const std::vector<Positions> &seen, int begin, int end) {
    const int position = report_.tree.nodes()[node].position;
    const auto add = [&](int from, int to) {
      if (from < to && static_cast<int>(parts_.size()) < limits_.mostParts)
        parts_.push_back({node, from - position, to - position, begin, end});
    };
    int at = run.position;
    for (const Positions &stretch : seen) {
      add(at, stretch.begin);
      at = stretch.end;
    }
    add(at, run.position + run.tokens);
  }

  const PlanReport &report_;
  const HiddenLimits &limits_;
  int questions_;
  std::vector<HiddenPart> parts_;
};

} // namespace

std::vector<HiddenPart> hiddenParts(const PlanReport &report, const HiddenLimits &limits) {
  if (report.facts.reach.isAll() && !report.shows)
    return {};
  return Finder(report, limits).find();
}

} // namespace deft::plan
