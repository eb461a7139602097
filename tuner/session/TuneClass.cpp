#include "tuner/session/TuneClass.h"

#include "compiler/support/Log.h"
#include "tuner/session/ClassSearch.h"
#include "tuner/session/DoneEvent.h"
#include "tuner/session/Finalists.h"
#include "tuner/session/Verdict.h"

#include <algorithm>

namespace deft::session {

using nlohmann::json;

namespace {

constexpr int kFinalRounds = 7, kConfirmRounds = 15, kHeldOutRounds = 9;
/// Each set of finalists has its own rounds: earlier measurements belong to another set.
constexpr int kRoundsOfSet = 100;
/// If time runs out, a final and a confirmation end after this many rounds.
constexpr std::size_t kFewestRounds = 5;

json classEvent(const ClassTask &task) {
  json trees = json::array();
  for (std::size_t i = 0; i < task.trees.samples.size(); ++i) {
    const Sample &sample = *task.trees.samples[i];
    trees.push_back({{"name", sample.name},
                     {"tokens", sample.tree.tokens()},
                     {"queries", sample.tree.queries().size()},
                     {"held_out", static_cast<int>(i) >= task.trees.searched},
                     {"untuned", task.untuned.ids()[i]}});
    if (sample.seed > 0)
      trees.back()["seed"] = sample.seed;
    if (sample.similar > 0)
      trees.back()["similar"] = sample.similar;
  }
  return {{"event", "class"},
          {"class", task.name()},
          {"trees", std::move(trees)},
          {"default", task.untuned.ids().front()}};
}

/// The final and the confirmation of a class, for the best of its search.
class Confirmation {
public:
  Confirmation(const SessionContext &context, const ClassTask &task, const Candidates &candidates,
               const SearchResult &found, CandidateTimer &timer, const ClassClock &clock,
               ClassProgress &progress)
      : context_(context), task_(task), candidates_(candidates), found_(found), timer_(timer), clock_(clock),
        progress_(progress),
        judge_(task.trees, task.untuned.first(), found.untunedUs(context.estimator()), context.estimator()) {}

  /// None: cancelled before any confirmation.
  std::optional<Verdict> run() {
    const auto confirmOne = [&](const std::string &id, int attempt) { return confirm(id, attempt); };
    const auto mayTry = [&](int attempt) {
      return !context_.listener.wantsToStop() && (attempt == 0 || clock_.isTimeFor(fewestToConfirm()));
    };
    return firstSettled(finalists(), bestOfSome(found_.scores), confirmOne, mayTry);
  }

private:
  /// In the order of confirmation; the untuned choice if nothing is more promising. Fewer if time is
  /// short.
  std::vector<std::string> finalists() {
    std::vector<std::string> ids = finalistsOf(found_.scores, candidates_, [&](const std::string &id) {
      return context_.journal.rejected(task_.name(), id) != nullptr;
    });
    const auto searched = static_cast<std::size_t>(task_.trees.searched);
    while (ids.size() > 1 &&
           !clock_.isTimeFor(fewestToConfirm() + (ids.size() + 1) * kFewestRounds * searched))
      ids.pop_back();
    if (ids.size() > 1) { // with one finalist, the confirmation is enough
      std::vector<Racer> racers;
      racers.reserve(ids.size());
      for (const std::string &id : ids)
        racers.push_back({id, {}, false});
      const bool hasRun = raceThem(racers, "final", {0, task_.trees.searched, kFinalFrom, kFinalRounds});
      ids.clear();
      if (hasRun)
        ids = orderOfFinalists(std::move(racers), candidates_, context_.estimator());
    }
    return ids.empty() ? std::vector<std::string>{kUntuned} : ids;
  }

  Verdict confirm(const std::string &finalist, int attempt) {
    if (finalist == kUntuned)
      return judge_.nothingFaster();
    const Candidate &candidate = candidates_.at(finalist);
    const int searched = task_.trees.searched, all = static_cast<int>(task_.trees.samples.size());
    // In rounds that no other attempt has used: their measurements were not made next to this one.
    const int turn = attempt * kConfirmRounds;
    Verdict verdict = judge_.onSearched(
        candidate.config, raceOne(finalist, {0, searched, kConfirmFrom + turn, kConfirmRounds}));
    if (!verdict.keepsUntuned && all > searched)
      verdict = judge_.onHeldOut(std::move(verdict),
                                 raceOne(finalist, {searched, all, kHeldOutFrom + turn, kHeldOutRounds}));
    if (verdict.isSettled && !verdict.keepsUntuned && candidate.isOfNeighbour())
      verdict.note = "the config of a neighbouring class";
    return verdict;
  }

  Racer raceOne(const std::string &finalist, const RaceOptions &options) {
    std::vector<Racer> racers{{finalist, {}, false}};
    (void)raceThem(racers, "confirm", options); // if the untuned choice fails, there are fewer rounds or none
    return std::move(racers.front());
  }

  /// False: the untuned choice failed.
  bool raceThem(std::vector<Racer> &racers, const char *stage, RaceOptions options) {
    options.firstRound += kRoundsOfSet * found_.scores.count();
    options.dropsHopeless = false;
    options.estimator = context_.estimator();
    Racer reference{kUntuned, {}, false};
    const auto measure = [&](const std::string &id, int tree, int round) {
      const auto us = timer_.measure(id, tree, round);
      progress_.tell(stage);
      return us;
    };
    const auto noDrop = [](const Racer &, int, double) {};
    const auto isEnough = [&] {
      return context_.listener.wantsToStop() || (clock_.isOver() && reference.rounds.size() >= kFewestRounds);
    };
    return race(reference, racers, options, measure, noDrop, isEnough);
  }

  /// Measurements of a finalist and of the untuned choice, on all trees.
  std::size_t fewestToConfirm() const { return 2 * kFewestRounds * task_.trees.samples.size(); }

  const SessionContext &context_;
  const ClassTask &task_;
  const Candidates &candidates_;
  const SearchResult &found_;
  CandidateTimer &timer_;
  const ClassClock &clock_;
  ClassProgress &progress_;
  ClassJudge judge_;
};

config_cache::Entry entryOf(const Verdict &verdict, const SessionContext &context, const ClassTask &task,
                            bool isComplete) {
  config_cache::Entry entry;
  entry.signature = config_cache::VariantSignature::of(context.input.variant);
  entry.treeClass = task.trees.treeClass;
  entry.config = verdict.config;
  entry.keepsDefault = verdict.keepsUntuned;
  entry.isComplete = isComplete;
  entry.onlyFor = verdict.onlyFor;
  entry.within = verdict.within;
  entry.measurement = verdict.measurement;
  entry.provenance = {DEFT_VERSION,
                      config_cache::kernelHash(context.device.key.kind, entry.signature.tensors),
                      config_cache::timestamp(), context.device.driver, context.options.note};
  return entry;
}

/// If the fastest runs count, the untuned choice's over all rounds are a better base than those of a
/// candidate's own race.
std::map<std::string, double> ratiosOf(const SearchResult &found, Estimator estimator) {
  std::map<std::string, double> ratios;
  for (const auto &[id, score] : found.scores.all())
    ratios[id] = estimator == Estimator::Fastest ? score.us / found.untunedUs(estimator) : score.ratio;
  return ratios;
}

} // namespace

ClassOutcome tuneClass(const SessionContext &context, const ClassTask &task) {
  Candidates candidates;
  ClassClock clock(ClassClock::Clock::now(), task.deadline, task.sessionEnd);
  CandidateTimer timer(context, task, candidates, clock);
  ClassProgress progress(context.listener, task, clock);
  context.journal.write(classEvent(task));
  progress.setLeft(mostCandidatesOf(context.options));
  progress.tell("search");

  const SearchResult found = searchClass(context, task, candidates, timer, clock, progress);
  std::optional<Verdict> verdict;
  if (found.isUsable && !found.isCancelled && found.untuned.hasRun())
    verdict = Confirmation(context, task, candidates, found, timer, clock, progress).run();

  ClassOutcome outcome;
  ClassReport &report = outcome.report;
  report.treeClass = task.trees.treeClass;
  report.trees = task.trees.searched;
  report.heldOut = static_cast<int>(task.trees.samples.size()) - task.trees.searched;
  report.candidates = found.scores.count();
  report.rejected = timer.rejected();
  if (!found.isUsable)
    report.note = "the untuned config cannot be measured";
  if (verdict && !context.listener.wantsToStop()) {
    report.isDone = true;
    report.entry = entryOf(*verdict, context, task, !found.isCut);
    report.gain = verdict->gain;
    report.gainError = verdict->gainError;
    report.heldOutGain = verdict->heldOutGain;
    report.note = verdict->note;
    json event = doneEvent(report);
    event["seconds"] = clock.secondsTaken();
    context.journal.write(event);
    context.journal.sync();
    if (support::isLogged())
      support::log({support::LogKind::Tune,
                    "class " + task.name() + " is done: " + std::to_string(report.candidates) +
                        " configs measured, " +
                        (verdict->keepsUntuned ? std::string("the untuned one stays")
                                               : std::to_string(report.gain) + " times as fast as untuned")});
  }
  outcome.isCut = found.isCut;
  outcome.made = timer.made();
  outcome.reused = timer.reused();
  outcome.openSeconds = timer.openSeconds();
  outcome.untunedUs = found.untunedUs(context.estimator());
  outcome.ratios = ratiosOf(found, context.estimator());
  return outcome;
}

} // namespace deft::session
