#include "compiler/config/ConfigJson.h"
#include "tuner/session/ClassTuner.h"

#include <algorithm>
#include <cmath>
#include <utility>

/// The search of a class.
namespace deft::session {

using nlohmann::json;
using space::Point;

namespace {

constexpr int kSearchRounds = 5, kRecordRounds = 3;
/// Candidates that are raced together. Few let the search learn sooner; on a GPU a round is so quick that the
/// untuned config's share of it should be small.
constexpr std::size_t kCpuBatch = 4, kGpuBatch = 8;
/// A race begins with so many whose kernels are there, while at most so many wait for theirs: a compiler
/// takes longer than a race.
constexpr std::size_t kFewestReady = 4, kMostWaiting = 16;
/// Of the class's time, what final and confirmation get.
constexpr double kFinalShare = 0.3;

} // namespace

bool ClassTuner::isSearchOver() {
  if (isCancelled())
    isStopped_ = true;
  if (!isCut_ && deadline_) {
    const auto since = [&](Clock::time_point time) {
      return std::chrono::duration<double>(time - start_).count() - setupSeconds_;
    };
    isCut_ = since(Clock::now()) > (1 - kFinalShare) * since(*deadline_);
  }
  return isStopped_ || isCut_;
}

std::string ClassTuner::enter(const config::Config &config, std::optional<Point> point,
                              const std::string &origin) {
  const std::string id = space::configId(config);
  const auto [found, isNew] = known_.try_emplace(id, Known{config, point, origin});
  if (!isNew && origin == kNeighbour)
    found->second.origin = origin;
  return id;
}

/// Once, when its turn has come.
void ClassTuner::tellCandidate(const std::string &id) {
  Known &known = known_.at(id);
  if (std::exchange(known.isTold, true))
    return;
  json event = {{"event", "candidate"},
                {"class", name_},
                {"id", id},
                {"config", config::toJson(known.config)},
                {"origin", known.origin}};
  if (known.point)
    if (const auto us = predictor_->microseconds(*known.point))
      event["predicted_us"] = *us;
  state_.journal.write(event);
}

/// A session that goes on races what was raced, whichever kernels are ready sooner this time.
std::vector<std::string> ClassTuner::batchOfJournal() {
  std::vector<std::string> ids;
  const auto *batch = state_.journal.batch(name_, rounds_);
  if (!batch)
    return ids;
  for (const std::string &id : *batch) {
    const json *event = state_.journal.candidate(name_, id);
    const auto config = event ? config::configFromJson(event->value("config", json()), state_.device.kind)
                              : support::Result<config::Config>(support::Error{});
    if (!config)
      return {};
    ids.push_back(enter(*config, state_.space.find(*config), event->value("origin", "")));
    asked_.insert(ids.back());
    tellCandidate(ids.back());
  }
  return ids;
}

/// Those that need not wait for a compiler: kernels are compiled while others are raced.
std::vector<std::string> ClassTuner::chooseBatch() {
  const std::size_t batch = state_.input.backend.kind == Backend::Kind::Cuda ? kGpuBatch : kCpuBatch;
  const std::size_t count =
      std::min(batch, static_cast<std::size_t>(std::max(mostCandidates() - measured_, 0)));
  std::vector<std::string> ready;
  const auto add = [&](const config::Config &config, const std::optional<Point> &point,
                       const std::string &origin) {
    const std::string id = space::configId(config);
    if (isUntunedOfAll(id) || !asked_.insert(id).second)
      return;
    enter(config, point, origin);
    if (!state_.journal.rejected(name_, id)) {
      waiting_.push_back(id);
      state_.lab.compilers().ahead({config});
    } else if (point) {
      strategy_->tell(*point, std::nullopt);
    }
  };
  if (!std::exchange(hasRelated_, true)) {
    for (const config::Config &config : related_.ofClass)
      add(config, state_.space.find(config), kRelated);
    for (const config::Config &config : related_.neighbours)
      add(config, state_.space.find(config), kNeighbour);
    isExhausted_ = related_.isKnown;
  }
  for (;;) {
    for (auto id = waiting_.begin(); id != waiting_.end() && ready.size() < count;) {
      const bool isReady = state_.lab.compilers().has(known_.at(*id).config);
      if (isReady)
        ready.push_back(*id);
      id = isReady ? waiting_.erase(id) : id + 1;
    }
    if (ready.size() >= count)
      break;
    if (!isExhausted_ && waiting_.size() < kMostWaiting) {
      const auto points = strategy_->propose(static_cast<int>(count - ready.size()));
      isExhausted_ = points.empty();
      for (const Point &point : points)
        add(state_.space.configOf(point), point, search::strategyName(state_.options.strategy));
      continue;
    }
    if (ready.size() >= kFewestReady || waiting_.empty())
      break;
    constexpr double kLookAgain = 0.2;
    state_.lab.compilers().wait(kLookAgain);
    tellProgress("search");
    if (isSearchOver())
      break;
  }
  for (const std::string &id : ready)
    tellCandidate(id);
  if (!ready.empty())
    state_.journal.write({{"event", "batch"}, {"class", name_}, {"round", rounds_}, {"ids", ready}});
  return ready;
}

std::vector<Racer> ClassTuner::nextBatch() {
  std::vector<std::string> ids = batchOfJournal();
  if (ids.empty())
    ids = chooseBatch();
  std::vector<Racer> racers;
  for (const std::string &id : ids)
    racers.push_back({id, {}, false});
  return racers;
}

/// Where the fastest runs count, the untuned config's are those of all rounds until now, not of this race
/// alone.
double ClassTuner::ratioOf(const Racer &racer) const {
  return estimator() == Estimator::Fastest ? racer.ownUs(estimator()) / reference_.ownUs(estimator())
                                           : std::exp(racer.score(estimator()));
}

void ClassTuner::rank(const Racer &racer, double ratio) {
  ranking_.emplace_back(ratio, racer.id);
  for (std::size_t tree = 0; tree < racer.trees(); ++tree) {
    if (trees_.samples[tree]->similar > 0)
      continue;
    const std::pair own(std::exp(racer.on({tree}).score(estimator())), racer.id);
    auto &best = bestOfTree_.try_emplace(tree, own).first->second;
    best = std::min(best, own);
  }
}

void ClassTuner::take(const std::vector<Racer> &racers) {
  for (const Racer &racer : racers) {
    const Known &known = known_.at(racer.id);
    const bool isUsable = racer.hasRun() && !state_.journal.rejected(name_, racer.id);
    const double ratio = isUsable ? ratioOf(racer) : 0;
    if (isUsable) {
      ++measured_;
      ratios_[racer.id] = ratio;
      us_[racer.id] = racer.ownUs(estimator());
      if (!racer.isOut)
        rank(racer, ratio);
      state_.journal.write({{"event", "scored"},
                            {"class", name_},
                            {"id", racer.id},
                            {"us", racer.ownUs(estimator())},
                            {"ratio", ratio}});
    }
    if (known.point)
      strategy_->tell(*known.point, isUsable ? std::optional(ratio) : std::nullopt);
  }
  std::sort(ranking_.begin(), ranking_.end());
}

/// False: not even the untuned config can be measured.
bool ClassTuner::search() {
  strategy_ = search::makeStrategy(state_.options.strategy, state_.space, *predictor_, state_.options.seed);
  for (const config::Config &config : state_.untuned) {
    untunedIds_.push_back(enter(config, state_.space.find(config), "default"));
    tellCandidate(untunedIds_.back());
  }
  state_.lab.compilers().ahead(state_.untuned);
  if (const auto &point = known_.at(untunedIds_.front()).point; point && isUntunedOfAll(untunedIds_.front()))
    strategy_->tell(*point, 1.0);
  const bool isRecording = !state_.options.recordFolder.empty();
  while (!isSearchOver()) {
    std::vector<Racer> racers = nextBatch();
    if (racers.empty() && reference_.hasRun())
      return true; // else nothing is known to try, and the untuned config is measured alone
    const RaceOptions options{
        0, trees_.searched, rounds_, isRecording ? kRecordRounds : kSearchRounds, !isRecording, estimator()};
    const auto onDrop = [&](const Racer &racer, int round, double ratio) {
      state_.journal.write(
          {{"event", "dropped"}, {"class", name_}, {"id", racer.id}, {"round", round}, {"ratio", ratio}});
    };
    const auto measure = [&](const std::string &id, int tree, int round) {
      return measureFor(id, tree, round, "search");
    };
    if (!race(reference_, racers, options, measure, onDrop, [&] { return isSearchOver(); }))
      return false;
    if (reference_.hasRun())
      untunedUs_ = reference_.ownUs(estimator());
    take(racers);
    rounds_ += options.rounds;
    forgetAllBut({untunedIds_.begin(), untunedIds_.end()});
    tellProgress("search");
  }
  return std::none_of(untunedIds_.begin(), untunedIds_.begin() + trees_.searched,
                      [&](const std::string &id) { return state_.journal.rejected(name_, id) != nullptr; });
}

/// Such a config cannot be faster on what is searched on. One that some of the trees get is a candidate like
/// any other: it may be what the others should get, too.
bool ClassTuner::isUntunedOfAll(const std::string &id) const {
  return std::all_of(untunedIds_.begin(), untunedIds_.begin() + trees_.searched,
                     [&](const std::string &untuned) { return untuned == id; });
}

} // namespace deft::session
