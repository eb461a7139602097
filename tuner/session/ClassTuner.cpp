#include "tuner/session/ClassTuner.h"

#include "compiler/config/ConfigJson.h"
#include "runtime/exec/ParamRanges.h"
#include "tuner/search/PlanModel.h"
#include "tuner/session/DoneEvent.h"

#include <algorithm>
#include <limits>

namespace deft::session {

using nlohmann::json;
using space::Point;

namespace {

/// Runs in a row of one measurement. On a GPU they cost less than what comes before them.
constexpr int kCpuRepeats = 3, kGpuRepeats = 7;
constexpr int kMostCandidates = 64;

} // namespace

ClassTuner::ClassTuner(SessionState &state, const TreesOfClass &trees, int index, int classes,
                       Related related, std::optional<Clock::time_point> deadline,
                       std::optional<Clock::time_point> sessionEnd)
    : state_(state), trees_(trees), name_(trees.treeClass.text()), index_(index), classes_(classes),
      related_(std::move(related)), deadline_(deadline), sessionEnd_(sessionEnd) {
  std::vector<const tree::KvTree *> searched;
  for (int i = 0; i < trees.searched; ++i)
    searched.push_back(&trees.samples[static_cast<std::size_t>(i)]->tree);
  predictor_ = std::make_unique<search::PlanModel>(
      state.space,
      plan::VariantFacts::of(state.input.variant, state.device.kind,
                             exec::reachOf(state.input.variant, state.input.params)),
      std::move(searched), state.device.units);
}

bool ClassTuner::isCancelled() const { return state_.listener.isCancelled && state_.listener.isCancelled(); }

int ClassTuner::mostCandidates() const {
  if (state_.options.mostCandidates > 0)
    return state_.options.mostCandidates;
  return state_.options.strategy == search::StrategyKind::Exhaustive ? std::numeric_limits<int>::max()
                                                                     : kMostCandidates;
}

void ClassTuner::tellProgress(const char *stage) {
  if (!state_.listener.progress)
    return;
  Status status{index_, classes_, name_, stage, measured_, 0, 0, untunedUs_, -1};
  status.left = std::max(0, mostCandidates() - measured_);
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

void ClassTuner::reject(const std::string &id, const Lab::Fault &fault) {
  if (isCancelled()) // and the child perhaps with it
    return;
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
  return state_.device.kind == config::DeviceKind::Cpu ? Estimator::Fastest : Estimator::Median;
}

double ClassTuner::sampleOf(const std::vector<double> &us) const {
  return estimator() == Estimator::Fastest ? *std::min_element(us.begin(), us.end()) : measure::median(us);
}

/// What the class cannot do without is not its search's time; but the session ends when it ends.
void ClassTuner::postpone(Clock::time_point since) {
  const Clock::duration taken = Clock::now() - since;
  setupSeconds_ += std::chrono::duration<double>(taken).count();
  if (deadline_)
    *deadline_ = sessionEnd_ ? std::min(*deadline_ + taken, *sessionEnd_) : *deadline_ + taken;
}

std::optional<double> ClassTuner::measureOnce(const std::string &id, int tree, int round) {
  if (state_.journal.rejected(name_, id))
    return std::nullopt;
  if (const auto *us = state_.journal.measured(name_, id, tree, round)) {
    // What a tree gets without an entry may race beside itself: that is measured once.
    if (!made_.contains({id, tree, round}))
      ++state_.reused;
    return sampleOf(*us);
  }
  if (!isOpen_) {
    const Clock::time_point before = Clock::now();
    const auto opened = state_.lab.openClass(index_);
    postpone(before);
    openSeconds_ = setupSeconds_;
    if (!opened) {
      reject(id, {"prepare", opened.error().message});
      return std::nullopt;
    }
    isOpen_ = true;
  }
  Known &known = known_.at(id);
  if (!known.isAdmitted) {
    const bool isChecked = state_.journal.isChecked(name_, id);
    const Clock::time_point before = Clock::now();
    if (const auto fault = state_.lab.admit(id, known.config, isChecked)) {
      reject(id, *fault);
      return std::nullopt;
    }
    known.isAdmitted = true;
    if (id == untunedIds_.front()) // the first one waits for the oracle, too
      postpone(before);
    if (!isChecked)
      state_.journal.write({{"event", "checked"}, {"class", name_}, {"id", id}});
  }
  std::vector<double> us;
  const int repeats = estimator() == Estimator::Median ? kGpuRepeats : kCpuRepeats;
  const Clock::time_point before = Clock::now();
  if (const auto fault = state_.lab.time(id, tree, repeats, us)) {
    reject(id, *fault);
    return std::nullopt;
  }
  timedSeconds_ += std::chrono::duration<double>(Clock::now() - before).count();
  ++state_.made;
  made_.insert({id, tree, round});
  state_.journal.write(
      {{"event", "measured"}, {"class", name_}, {"id", id}, {"tree", tree}, {"round", round}, {"us", us}});
  return sampleOf(us);
}

std::optional<double> ClassTuner::measureFor(const std::string &id, int tree, int round, const char *stage) {
  const auto us = measureOnce(id == kUntuned ? untunedIds_[static_cast<std::size_t>(tree)] : id, tree, round);
  tellProgress(stage);
  return us;
}

void ClassTuner::forgetAllBut(const std::set<std::string> &ids) {
  for (auto &[id, known] : known_)
    if (known.isAdmitted && !ids.contains(id)) {
      state_.lab.forget(id);
      known.isAdmitted = false;
    }
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
                     {"held_out", static_cast<int>(i) >= trees_.searched},
                     {"untuned", space::configId(state_.untuned[i])}});
    if (sample.similar > 0)
      trees.back()["similar"] = sample.similar;
  }
  state_.journal.write({{"event", "class"},
                        {"class", name_},
                        {"trees", std::move(trees)},
                        {"default", space::configId(state_.untuned.front())}});
  tellProgress("search");
  const bool isUsable = search();
  if (!isUsable)
    report.note = "the untuned config cannot be measured";
  if (isUsable && !isStopped_ && reference_.hasRun()) {
    confirmInTurn(report);
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
  entry.isComplete = !isCut_;
  entry.provenance = {DEFT_VERSION, config_cache::kernelHash(state_.device.kind), config_cache::timestamp(),
                      state_.driver, state_.options.note};
  json event = doneEvent(report, isCut_);
  event["seconds"] = std::chrono::duration<double>(Clock::now() - start_).count();
  state_.journal.write(event);
  state_.journal.sync();
}

} // namespace deft::session
