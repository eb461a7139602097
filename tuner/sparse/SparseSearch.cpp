#include "tuner/sparse/SparseSearch.h"

#include "tuner/measure/Samples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace deft::sparse {

using support::Result;

namespace {

constexpr int kScreeningRounds = 3, kCutRounds = 5, kFinalRounds = 11;
constexpr std::size_t kFinalists = 3; ///< in addition to the untuned tile
constexpr double kErrors = 3;         ///< a gain is clear if it exceeds this many of its standard errors

/// A tile and a cut.
using Choice = std::pair<std::size_t, int>;
using Samples = std::map<Choice, std::vector<double>>;

double logOf(const std::vector<double> &us) { return std::log(measure::median(us)); }

/// The times of one tile on some lists.
struct TileTimes {
  int cutUntuned = 0, best = 0;
  std::vector<double> untuned, tuned; ///< measured in turns

  /// Faster clearly, not by luck.
  bool isFaster() const {
    const measure::Estimate before = measure::estimate(untuned), after = measure::estimate(tuned);
    if (best == cutUntuned || after.value <= 0 || before.value <= 0)
      return false;
    const double error = std::hypot(before.error / before.value, after.error / after.value);
    return before.value / after.value >= std::max(kLeastGain, 1 + kErrors * error);
  }
  const std::vector<double> &us() const { return isFaster() ? tuned : untuned; }
};

/// One search from start to end.
class Searcher {
public:
  Searcher(SparseMachine &machine, const SearchOptions &options) : machine_(machine), options_(options) {}

  Result<SearchResult> run() {
    finalists_ = {0};
    if (options_.tile && *options_.tile != 0)
      finalists_.push_back(*options_.tile);
    if (!options_.tile && machine_.tiles().size() > 1)
      if (auto screened = screen(); !screened)
        return screened.error();
    for (const Lists &lists : options_.lists) {
      if (isOver())
        break;
      auto timed = timeTiles(lists);
      if (!timed)
        return timed.error();
      if (timed->empty())
        break;
      times_.push_back(std::move(*timed));
    }
    return judge();
  }

private:
  bool isOver() const { return options_.isOver && options_.isOver(); }

  void tell(const Lists &lists, const std::string &what) const {
    if (!options_.progress)
      return;
    const auto done = static_cast<int>(times_.size()), all = static_cast<int>(options_.lists.size());
    options_.progress({"budget " + std::to_string(lists.budget) + ", " + std::to_string(lists.queries) +
                           (lists.queries == 1 ? " query: " : " queries: ") + what,
                       done, all - done});
  }

  /// Times each `rounds` times, in rotating order. False: time was over before all were done.
  Result<bool> timeInTurns(const std::vector<Choice> &choices, int rounds, Samples &samples) {
    for (int round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < choices.size(); ++i) {
        if (isOver())
          return false;
        const Choice &choice = choices[(i + static_cast<std::size_t>(round)) % choices.size()];
        const auto us = machine_.time(choice.first, choice.second);
        if (!us)
          return us.error();
        samples[choice].push_back(*us);
      }
    return true;
  }

  /// Finds the best tiles with the rule's cuts, on the lists of all budgets with a power of two of queries.
  Result<void> screen() {
    const std::size_t tiles = machine_.tiles().size();
    std::vector<double> sum(tiles, 0);
    for (const Lists &lists : options_.lists) {
      if ((lists.queries & (lists.queries - 1)) != 0)
        continue;
      tell(lists, "which of " + std::to_string(tiles) + " tiles");
      if (auto opened = machine_.open(lists); !opened)
        return opened;
      std::vector<Choice> choices;
      for (std::size_t tile = 0; tile < tiles; ++tile) {
        const auto cuts = machine_.cuts(tile);
        if (!cuts)
          return cuts.error();
        choices.emplace_back(tile, cuts->front());
      }
      Samples samples;
      const auto isDone = timeInTurns(choices, kScreeningRounds, samples);
      if (!isDone)
        return isDone.error();
      if (!*isDone)
        break;
      for (const Choice &choice : choices)
        sum[choice.first] += logOf(samples[choice]);
    }
    std::vector<std::size_t> others(tiles - 1);
    std::iota(others.begin(), others.end(), 1);
    std::stable_sort(others.begin(), others.end(),
                     [&](std::size_t a, std::size_t b) { return sum[a] < sum[b]; });
    others.resize(std::min(others.size(), kFinalists));
    finalists_.insert(finalists_.end(), others.begin(), others.end());
    return {};
  }

  /// The best cut of each remaining tile, by new times; empty: time was over.
  Result<std::vector<TileTimes>> timeTiles(const Lists &lists) {
    if (auto opened = machine_.open(lists); !opened)
      return opened.error();
    std::vector<TileTimes> times;
    std::vector<Choice> last;
    for (const std::size_t tile : finalists_) {
      tell(lists, "cuts for " + std::to_string(machine_.tiles()[tile].tileKv) + " tokens a tile");
      const auto cuts = machine_.cuts(tile);
      if (!cuts)
        return cuts.error();
      std::vector<Choice> choices;
      for (const int tokens : *cuts)
        choices.emplace_back(tile, tokens);
      Samples samples;
      const auto isDone = timeInTurns(choices, kCutRounds, samples);
      if (!isDone)
        return isDone.error();
      if (!*isDone)
        return std::vector<TileTimes>();
      const auto best =
          std::min_element(choices.begin(), choices.end(), [&](const Choice &a, const Choice &b) {
            return measure::median(samples[a]) < measure::median(samples[b]);
          });
      TileTimes &own = times.emplace_back();
      own.cutUntuned = cuts->front();
      own.best = best->second;
      last.emplace_back(tile, own.cutUntuned);
      if (own.best != own.cutUntuned)
        last.push_back(*best);
    }
    tell(lists, "the best of each tile");
    Samples samples;
    const auto isDone = timeInTurns(last, kFinalRounds, samples);
    if (!isDone)
      return isDone.error();
    if (!*isDone)
      return std::vector<TileTimes>();
    for (std::size_t i = 0; i < times.size(); ++i) {
      times[i].untuned = samples[{finalists_[i], times[i].cutUntuned}];
      times[i].tuned = samples[{finalists_[i], times[i].best}];
    }
    return times;
  }

  /// A tile's mean time over all finished lists.
  double meanOf(std::size_t finalist) const {
    double sum = 0;
    for (const std::vector<TileTimes> &times : times_)
      sum += logOf(times[finalist].us());
    return times_.empty() ? 1 : std::exp(sum / static_cast<double>(times_.size()));
  }

  SearchResult judge() const {
    std::size_t chosen = 0;
    if (options_.tile) {
      chosen = finalists_.size() - 1;
    } else {
      for (std::size_t i = 1; i < finalists_.size(); ++i)
        if (meanOf(i) < meanOf(chosen))
          chosen = i;
      if (meanOf(0) < kLeastGain * meanOf(chosen))
        chosen = 0;
    }
    SearchResult result;
    result.tile = finalists_[chosen];
    result.tileGain = meanOf(0) / meanOf(chosen);
    for (std::size_t i = 0; i < times_.size(); ++i) {
      const TileTimes &own = times_[i][chosen];
      result.lists.push_back({options_.lists[i], own.isFaster() ? own.best : 0, own.cutUntuned,
                              measure::median(own.us()), measure::median(times_[i][0].untuned),
                              measure::relativeSpread(own.us())});
    }
    result.isComplete = times_.size() == options_.lists.size();
    return result;
  }

  SparseMachine &machine_;
  const SearchOptions &options_;
  std::vector<std::size_t> finalists_;        ///< tiles; the untuned one first
  std::vector<std::vector<TileTimes>> times_; ///< for each finished set of lists, for each of these
};

} // namespace

Result<SearchResult> search(SparseMachine &machine, const SearchOptions &options) {
  return Searcher(machine, options).run();
}

} // namespace deft::sparse
