#include "tuner/session/ClassTuner.h"

#include "compiler/config/ConfigJson.h"
#include "tuner/search/PlanModel.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace deft::session {

using nlohmann::json;
using space::Point;

namespace {

constexpr int kSearchRounds = 5, kRecordRounds = 3, kFinalRounds = 7, kConfirmRounds = 15;
constexpr int kFinalFrom = 1'000'000, kConfirmFrom = 2'000'000, kHeldOutFrom = 3'000'000;
constexpr int kMostCandidates = 64;
/// Candidates that are raced together. Few let the search learn sooner; on a GPU a round is so quick that the
/// untuned config's share of it should be small.
constexpr std::size_t kCpuBatch = 4, kGpuBatch = 8;
/// A race begins with so many whose kernels are there, while at most so many wait for theirs: a compiler
/// takes longer than a race.
constexpr std::size_t kFewestReady = 4, kMostWaiting = 16;
constexpr std::size_t kFinalists = 4;
/// Runs in a row of one measurement. On a GPU they cost less than what comes before them.
constexpr int kCpuRepeats = 3, kGpuRepeats = 7;
/// When the time is over, a final and a confirmation end with so many rounds.
constexpr std::size_t kFewestRounds = 5;
/// Of the class's time, what final and confirmation get.
constexpr double kFinalShare = 0.3;
/// A config is clearly faster when it is by this much, beyond twice the standard error.
constexpr double kClearGain = 0.01;
/// And clearly slower on trees that were held out.
constexpr double kClearLoss = 0.02;
/// Configs closer than this are as good as each other.
constexpr double kTie = 0.015;

const std::string kNeighbour = "neighbour"; ///< an origin

const auto kNoDrop = [](const Racer &, int, double) {};

} // namespace

ClassTuner::ClassTuner(SessionState &state, const TreesOfClass &trees, int index, int classes,
                       std::vector<config::Config> neighbours, std::optional<Clock::time_point> deadline,
                       std::optional<Clock::time_point> sessionEnd)
    : state_(state), trees_(trees), name_(trees.treeClass.text()), index_(index), classes_(classes),
      neighbours_(std::move(neighbours)), deadline_(deadline), sessionEnd_(sessionEnd) {
  std::vector<const tree::KvTree *> searched;
  for (int i = 0; i < trees.searched; ++i)
    searched.push_back(&trees.samples[static_cast<std::size_t>(i)]->tree);
  predictor_ = std::make_unique<search::PlanModel>(state.space, plan::VariantFacts::of(state.input.variant),
                                                   std::move(searched), state.device.units);
}

bool ClassTuner::isCancelled() const { return state_.listener.isCancelled && state_.listener.isCancelled(); }

bool ClassTuner::isEnough(const Racer &reference) const {
  return isCancelled() ||
         (deadline_ && Clock::now() > *deadline_ && reference.rounds.size() >= kFewestRounds);
}

bool ClassTuner::isSearchOver() {
  if (isCancelled())
    isStopped_ = true;
  if (!isCut_ && deadline_) {
    const double share = std::chrono::duration<double>(*deadline_ - start_).count() * (1 - kFinalShare);
    isCut_ = std::chrono::duration<double>(Clock::now() - start_).count() > share;
  }
  return isStopped_ || isCut_;
}

void ClassTuner::tellProgress(const char *stage) {
  if (!state_.listener.progress)
    return;
  Status status{index_, classes_, name_, stage, measured_, 0, 0, untunedUs_, -1};
  const int most = state_.options.mostCandidates > 0 ? state_.options.mostCandidates : kMostCandidates;
  status.left = std::max(0, most - measured_);
  if (state_.options.strategy == search::StrategyKind::Exhaustive && strategy_ && strategy_->left())
    status.left = static_cast<int>(*strategy_->left());
  double best = 1;
  for (const auto &[ratio, id] : ranking_)
    best = std::min(best, ratio);
  status.bestUs = best * untunedUs_;
  if (sessionEnd_)
    status.secondsLeft = std::max(0.0, std::chrono::duration<double>(*sessionEnd_ - Clock::now()).count());
  state_.listener.progress(status);
}

std::string ClassTuner::enter(const config::Config &config, std::optional<Point> point,
                              const std::string &origin) {
  const std::string id = space::configId(config);
  const auto [found, isNew] = known_.try_emplace(id, Known{config, point, false, false});
  if (origin == kNeighbour)
    found->second.isNeighbour = true;
  if (!isNew)
    return id;
  json event = {{"event", "candidate"},
                {"class", name_},
                {"id", id},
                {"config", config::toJson(config)},
                {"origin", origin}};
  if (point)
    if (const auto us = predictor_->microseconds(*point))
      event["predicted_us"] = *us;
  state_.journal.write(event);
  return id;
}

void ClassTuner::reject(const std::string &id, const Lab::Fault &fault) {
  ++rejected_;
  state_.journal.write({{"event", "rejected"},
                        {"class", name_},
                        {"id", id},
                        {"stage", fault.stage},
                        {"reason", fault.reason}});
  if (state_.listener.note)
    state_.listener.note("candidate " + id + " is left out: " + fault.stage + ": " + fault.reason);
}

Estimator ClassTuner::estimator() const {
  return state_.device.kind == config_cache::DeviceKey::Kind::Cpu ? Estimator::Fastest : Estimator::Median;
}

double ClassTuner::sampleOf(const std::vector<double> &us) const {
  return estimator() == Estimator::Fastest ? *std::min_element(us.begin(), us.end()) : measure::median(us);
}

std::optional<double> ClassTuner::measureOnce(const std::string &id, int tree, int round) {
  if (state_.journal.rejected(name_, id))
    return std::nullopt;
  if (const auto *us = state_.journal.measured(name_, id, tree, round)) {
    ++state_.reused;
    return sampleOf(*us);
  }
  if (!isOpen_) {
    if (auto opened = state_.lab.openClass(index_); !opened) {
      reject(id, {"prepare", opened.error().message});
      return std::nullopt;
    }
    isOpen_ = true;
  }
  Known &known = known_.at(id);
  if (!known.isAdmitted) {
    const bool isChecked = state_.journal.isChecked(name_, id);
    if (const auto fault = state_.lab.admit(id, known.config, isChecked)) {
      reject(id, *fault);
      return std::nullopt;
    }
    known.isAdmitted = true;
    if (!isChecked)
      state_.journal.write({{"event", "checked"}, {"class", name_}, {"id", id}});
  }
  std::vector<double> us;
  const int repeats = estimator() == Estimator::Median ? kGpuRepeats : kCpuRepeats;
  if (const auto fault = state_.lab.time(id, tree, repeats, us)) {
    reject(id, *fault);
    return std::nullopt;
  }
  ++state_.made;
  state_.journal.write(
      {{"event", "measured"}, {"class", name_}, {"id", id}, {"tree", tree}, {"round", round}, {"us", us}});
  return sampleOf(us);
}

void ClassTuner::forgetAllBut(const std::set<std::string> &ids) {
  for (auto &[id, known] : known_)
    if (known.isAdmitted && !ids.contains(id)) {
      state_.lab.forget(id);
      known.isAdmitted = false;
    }
}

/// A session that goes on races what was raced, whichever kernels are ready sooner this time.
std::vector<std::string> ClassTuner::batchOfJournal() {
  std::vector<std::string> ids;
  const auto *batch = state_.journal.batch(name_, rounds_);
  if (!batch)
    return ids;
  for (const std::string &id : *batch) {
    const json *event = state_.journal.candidate(name_, id);
    const auto config = event ? config::configFromJson(event->value("config", json()))
                              : support::Result<config::Config>(support::Error{});
    if (!config)
      return {};
    ids.push_back(enter(*config, state_.space.find(*config), event->value("origin", "")));
  }
  return ids;
}

/// Those that need not wait for a compiler: kernels are compiled while others are raced.
std::vector<std::string> ClassTuner::chooseBatch() {
  const std::size_t batch = state_.input.backend.kind == Backend::Kind::Cuda ? kGpuBatch : kCpuBatch;
  const int most = state_.options.mostCandidates > 0 ? state_.options.mostCandidates
                   : state_.options.strategy == search::StrategyKind::Exhaustive
                       ? std::numeric_limits<int>::max()
                       : kMostCandidates;
  const std::size_t count = std::min(batch, static_cast<std::size_t>(std::max(most - measured_, 0)));
  std::vector<std::string> ready;
  const auto add = [&](const config::Config &config, const std::optional<Point> &point,
                       const std::string &origin) {
    if (known_.contains(space::configId(config)))
      return;
    const std::string id = enter(config, point, origin);
    if (!state_.journal.rejected(name_, id)) {
      waiting_.push_back(id);
      state_.lab.compileAhead({config});
    } else if (point) {
      strategy_->tell(*point, std::nullopt);
    }
  };
  if (rounds_ == 0)
    for (const config::Config &config : neighbours_)
      add(config, state_.space.find(config), kNeighbour);
  for (;;) {
    for (auto id = waiting_.begin(); id != waiting_.end() && ready.size() < count;) {
      const bool isReady = state_.lab.isCompiled(known_.at(*id).config);
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
    state_.lab.waitForKernels(kLookAgain);
    tellProgress("search");
    if (isSearchOver())
      break;
  }
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
        ranking_.emplace_back(ratio, racer.id);
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
  reference_.id = enter(state_.untuned, state_.space.find(state_.untuned), "default");
  state_.lab.compileAhead({state_.untuned});
  if (const auto &point = known_.at(reference_.id).point)
    strategy_->tell(*point, 1.0);
  const bool isRecording = !state_.options.recordFolder.empty();
  while (!isSearchOver()) {
    std::vector<Racer> racers = nextBatch();
    if (racers.empty())
      return true;
    const RaceOptions options{
        0, trees_.searched, rounds_, isRecording ? kRecordRounds : kSearchRounds, !isRecording, estimator()};
    const auto onDrop = [&](const Racer &racer, int round, double ratio) {
      state_.journal.write(
          {{"event", "dropped"}, {"class", name_}, {"id", racer.id}, {"round", round}, {"ratio", ratio}});
    };
    const auto measure = [&](const std::string &id, int tree, int round) {
      const auto us = measureOnce(id, tree, round);
      tellProgress("search");
      return us;
    };
    if (!race(reference_, racers, options, measure, onDrop, [&] { return isSearchOver(); }))
      return false;
    if (reference_.hasRun())
      untunedUs_ = reference_.ownUs(estimator());
    take(racers);
    rounds_ += options.rounds;
    forgetAllBut({reference_.id});
    tellProgress("search");
  }
  return !state_.journal.rejected(name_, reference_.id);
}

/// The best of the best in a race of its own; the untuned config where nothing promises more.
std::string ClassTuner::final() {
  std::vector<Racer> racers;
  const auto add = [&](const std::string &id) {
    if (!state_.journal.rejected(name_, id) &&
        std::none_of(racers.begin(), racers.end(), [&](const Racer &racer) { return racer.id == id; }))
      racers.push_back({id, {}, false});
  };
  for (const auto &[ratio, id] : ranking_)
    if (racers.size() < kFinalists && ratio < 1)
      add(id);
  for (const auto &[ratio, id] : ranking_)
    if (known_.at(id).isNeighbour && ratio < 1)
      add(id);
  if (racers.empty())
    return reference_.id;
  // What was measured before belongs to other finalists: rounds of its own for each set.
  const RaceOptions options{0,     trees_.searched, kFinalFrom + 100 * measured_, kFinalRounds,
                            false, estimator()};
  Racer reference{reference_.id, {}, false};
  const auto measure = [&](const std::string &id, int tree, int round) {
    const auto us = measureOnce(id, tree, round);
    tellProgress("final");
    return us;
  };
  if (!race(reference, racers, options, measure, kNoDrop, [&] { return isEnough(reference); }))
    return reference_.id;
  std::erase_if(racers, [](const Racer &racer) { return racer.isOut || !racer.hasRun(); });
  if (racers.empty())
    return reference_.id;
  const auto isFaster = [&](const Racer &a, const Racer &b) {
    return a.score(estimator()) < b.score(estimator());
  };
  const Racer &best = *std::min_element(racers.begin(), racers.end(), isFaster);
  for (const Racer &racer : racers) // a neighbour's is as good: one config for both
    if (known_.at(racer.id).isNeighbour && racer.score(estimator()) < best.score(estimator()) + kTie &&
        racer.score(estimator()) < -kClearGain)
      return racer.id;
  return best.id;
}

/// The winner against the untuned config, in rounds of their own; then on trees that nobody searched on.
void ClassTuner::confirm(const std::string &winner, ClassReport &report) {
  const auto keepDefault = [&](const std::string &why) {
    report.entry.config = state_.untuned;
    report.entry.keepsDefault = true;
    report.entry.measurement.tunedUs = report.entry.measurement.untunedUs;
    report.gain = 1;
    report.note = why;
  };
  report.entry.config = known_.at(winner).config;
  report.entry.measurement = {untunedUs_, untunedUs_, 0, trees_.searched};
  if (winner == reference_.id)
    return keepDefault("nothing measured was faster than the untuned config");
  const auto measure = [&](const std::string &id, int tree, int round) {
    const auto us = measureOnce(id, tree, round);
    tellProgress("confirm");
    return us;
  };
  const auto against = [&](int treeBegin, int treeEnd, int from, Racer &reference) {
    std::vector<Racer> racers{{winner, {}, false}};
    (void)race(reference, racers,
               {treeBegin, treeEnd, from + 100 * measured_, kConfirmRounds, false, estimator()}, measure,
               kNoDrop, [&] { return isEnough(reference); });
    return racers.front();
  };
  Racer reference{reference_.id, {}, false};
  const Racer tuned = against(0, trees_.searched, kConfirmFrom, reference);
  if (tuned.isOut || !tuned.hasRun())
    return keepDefault("the winner failed when it was to be confirmed");
  const measure::Estimate ratio = measure::estimate(tuned.logRatios());
  report.entry.measurement = {tuned.ownUs(estimator()), tuned.referenceUs(estimator()),
                              measure::relativeSpread(tuned.roundUs()), trees_.searched};
  report.gain = std::exp(-tuned.score(estimator()));
  report.gainError = ratio.error;
  if (std::max(ratio.value, tuned.score(estimator())) + 2 * ratio.error > -kClearGain)
    return keepDefault("the best of the search is not clearly faster than the untuned config");
  const int all = static_cast<int>(trees_.samples.size());
  if (all > trees_.searched) {
    Racer untuned{reference_.id, {}, false};
    const Racer held = against(trees_.searched, all, kHeldOutFrom, untuned);
    if (held.isOut || !held.hasRun())
      return keepDefault("the winner failed on trees that were held out");
    const measure::Estimate heldOut = measure::estimate(held.logRatios());
    report.heldOutGain = std::exp(-held.score(estimator()));
    if (heldOut.value - 2 * heldOut.error > kClearLoss)
      return keepDefault("the winner is slower than the untuned config on trees that were held out");
  }
  if (known_.at(winner).isNeighbour)
    report.note = "the config of a neighbouring class";
}

std::map<std::string, double> ClassTuner::recordedRatios() const {
  if (estimator() == Estimator::Median)
    return ratios_;
  // The untuned config was measured in every round: its fastest run of all is the better base.
  std::map<std::string, double> ratios;
  for (const auto &[id, us] : us_)
    ratios[id] = us / untunedUs_;
  return ratios;
}

ClassReport ClassTuner::run() {
  ClassReport report;
  report.treeClass = trees_.treeClass;
  report.trees = trees_.searched;
  report.heldOut = static_cast<int>(trees_.samples.size()) - trees_.searched;
  json trees = json::array();
  for (std::size_t i = 0; i < trees_.samples.size(); ++i) {
    const Sample &sample = *trees_.samples[i];
    trees.push_back({{"name", sample.name},
                     {"tokens", sample.tree.tokens()},
                     {"queries", sample.tree.queries().size()},
                     {"held_out", static_cast<int>(i) >= trees_.searched}});
  }
  state_.journal.write({{"event", "class"},
                        {"class", name_},
                        {"trees", std::move(trees)},
                        {"default", space::configId(state_.untuned)}});
  tellProgress("search");
  const bool isUsable = search();
  if (!isUsable)
    report.note = "the untuned config cannot be measured";
  if (isUsable && !isStopped_ && reference_.hasRun()) {
    const std::string winner = final();
    if (!isCancelled())
      confirm(winner, report);
    report.isDone = !isCancelled();
  }
  report.candidates = measured_;
  report.rejected = rejected_;
  if (report.isDone)
    finish(report);
  return report;
}

void ClassTuner::finish(ClassReport &report) {
  config_cache::Entry &entry = report.entry;
  entry.signature = config_cache::VariantSignature::of(state_.input.variant);
  entry.treeClass = trees_.treeClass;
  entry.provenance = {DEFT_VERSION, config_cache::kernelHash(state_.device.kind), config_cache::timestamp(),
                      state_.driver, state_.options.note};
  json event = {{"event", "done"},
                {"class", name_},
                {"entry", config_cache::toJson(entry)},
                {"winner", space::configId(entry.config)},
                {"gain", report.gain},
                {"gain_error", report.gainError},
                {"held_out_gain", report.heldOutGain ? json(*report.heldOutGain) : json()},
                {"candidates", measured_},
                {"rejected", rejected_},
                {"is_cut", isCut_},
                {"note", report.note},
                {"seconds", std::chrono::duration<double>(Clock::now() - start_).count()}};
  state_.journal.write(event);
  state_.journal.sync();
}

} // namespace deft::session
