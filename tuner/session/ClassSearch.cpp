#include "tuner/session/ClassSearch.h"

#include "runtime/exec/ParamRanges.h"
#include "tuner/search/PlanModel.h"
#include "tuner/session/BatchChooser.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace deft::session {
namespace {

constexpr int kMostCandidates = 64;
constexpr int kSearchRounds = 5, kRecordRounds = 3;
/// Candidates in one race. With few, the search learns sooner. On a GPU a round is so fast that the untuned
/// config's share of it should be small.
constexpr std::size_t kCpuBatch = 4, kGpuBatch = 8;

bool isExhaustive(const TuneOptions &options) { return options.strategy == search::StrategyKind::Exhaustive; }

search::PlanModel modelOf(const SessionContext &context, const TreesOfClass &trees) {
  std::vector<const tree::KvTree *> searched;
  searched.reserve(trees.samples.size());
  for (int i = 0; i < trees.searched; ++i)
    searched.push_back(&trees.samples[static_cast<std::size_t>(i)]->tree);
  return {context.space,
          plan::VariantFacts::of(context.input.variant, context.device.key.kind,
                                 exec::reachOf(context.input.variant, context.input.params)),
          std::move(searched), context.device.key.units};
}

class Search {
public:
  Search(const SessionContext &context, const ClassTask &task, Candidates &candidates, CandidateTimer &timer,
         const ClassClock &clock, ClassProgress &progress)
      : context_(context), task_(task), candidates_(candidates), timer_(timer), clock_(clock),
        progress_(progress), model_(modelOf(context, task.trees)),
        strategy_(
            search::makeStrategy(context.options.strategy, context.space, model_, context.options.seed)),
        chooser_({context.space, task.untuned, candidates, *strategy_, model_, context.processes.compilers(),
                  context.journal, task.name(), search::strategyName(context.options.strategy),
                  context.device.key.kind},
                 task.related) {
    for (int tree = 0; tree < task.trees.searched; ++tree)
      if (task.trees.samples[static_cast<std::size_t>(tree)]->similar == 0)
        given_.push_back(static_cast<std::size_t>(tree));
  }

  SearchResult run() {
    chooser_.begin();
    for (int round = 0; !isOver(); round += rounds()) {
      std::vector<Racer> racers = nextBatch(round);
      if (racers.empty() && result_.untuned.hasRun())
        return std::move(result_);
      // Without known candidates, only the untuned choice is measured.
      if (!raceBatch(racers, round)) {
        result_.isUsable = false;
        return std::move(result_);
      }
      for (const Racer &racer : racers)
        take(racer);
      progress_.setScores(result_.scores, result_.untunedUs(context_.estimator()));
      timer_.forgetAllBut(task_.untuned.ids());
      tellProgress();
    }
    const auto searched = task_.untuned.searchedIds();
    result_.isUsable = std::none_of(searched.begin(), searched.end(), [&](const std::string &id) {
      return context_.journal.rejected(task_.name(), id) != nullptr;
    });
    return std::move(result_);
  }

private:
  int rounds() const { return context_.isRecording() ? kRecordRounds : kSearchRounds; }

  /// Once true, it stays true.
  bool isOver() {
    result_.isCancelled = result_.isCancelled || context_.listener.wantsToStop();
    result_.isCut = result_.isCut || clock_.isSearchOver();
    return result_.isCancelled || result_.isCut;
  }

  std::vector<Racer> nextBatch(int round) {
    const std::size_t batch = context_.input.backend.isGpu() ? kGpuBatch : kCpuBatch;
    const int left = std::max(mostCandidatesOf(context_.options) - result_.scores.count(), 0);
    const auto isOverMeanwhile = [&] {
      tellProgress();
      return isOver();
    };
    std::vector<Racer> racers;
    for (const std::string &id :
         chooser_.next(round, std::min(batch, static_cast<std::size_t>(left)), isOverMeanwhile))
      racers.push_back({id, {}, false});
    return racers;
  }

  bool raceBatch(std::vector<Racer> &racers, int round) {
    const RaceOptions options{0,        task_.trees.searched,    round,
                              rounds(), !context_.isRecording(), context_.estimator()};
    const auto measure = [&](const std::string &id, int tree, int at) {
      const auto us = timer_.measure(id, tree, at);
      tellProgress();
      return us;
    };
    const auto onDrop = [&](const Racer &racer, int at, double ratio) {
      context_.journal.write(
          {{"event", "dropped"}, {"class", task_.name()}, {"id", racer.id}, {"round", at}, {"ratio", ratio}});
    };
    return race(result_.untuned, racers, options, measure, onDrop, [&] { return isOver(); });
  }

  /// If the fastest runs count, the untuned choice's are those of all rounds so far, not only of this
  /// race.
  double ratioOf(const Racer &racer) const {
    const Estimator estimator = context_.estimator();
    return estimator == Estimator::Fastest ? racer.ownUs(estimator) / result_.untuned.ownUs(estimator)
                                           : std::exp(racer.score(estimator));
  }

  void take(const Racer &racer) {
    const bool isUsable = racer.hasRun() && !context_.journal.rejected(task_.name(), racer.id);
    std::optional<double> ratio;
    if (isUsable) {
      ratio = ratioOf(racer);
      const double us = racer.ownUs(context_.estimator());
      result_.scores.add(racer, {*ratio, us}, given_, context_.estimator());
      context_.journal.write(
          {{"event", "scored"}, {"class", task_.name()}, {"id", racer.id}, {"us", us}, {"ratio", *ratio}});
    }
    if (const auto &point = candidates_.at(racer.id).point)
      strategy_->tell(*point, ratio);
  }

  void tellProgress() {
    int left = std::max(0, mostCandidatesOf(context_.options) - result_.scores.count());
    if (const auto points = strategy_->left(); points && isExhaustive(context_.options))
      left = static_cast<int>(*points);
    progress_.setLeft(left);
    progress_.tell("search");
  }

  const SessionContext &context_;
  const ClassTask &task_;
  Candidates &candidates_;
  CandidateTimer &timer_;
  const ClassClock &clock_;
  ClassProgress &progress_;
  search::PlanModel model_;
  std::unique_ptr<search::Strategy> strategy_;
  BatchChooser chooser_;
  std::vector<std::size_t> given_; ///< of the searched trees, those that were given, not made as similar ones
  SearchResult result_;
};

} // namespace

SearchResult searchClass(const SessionContext &context, const ClassTask &task, Candidates &candidates,
                         CandidateTimer &timer, const ClassClock &clock, ClassProgress &progress) {
  return Search(context, task, candidates, timer, clock, progress).run();
}

int mostCandidatesOf(const TuneOptions &options) {
  if (options.mostCandidates > 0)
    return options.mostCandidates;
  return isExhaustive(options) ? std::numeric_limits<int>::max() : kMostCandidates;
}

} // namespace deft::session
