#include "tuner/session/TuneClasses.h"

#include "runtime/config_cache/LargeTrees.h"
#include "runtime/config_cache/UntunedChooser.h"
#include "runtime/exec/ParamRanges.h"
#include "tuner/session/DoneEvent.h"
#include "tuner/session/Recording.h"
#include "tuner/session/TuneClass.h"

#include <algorithm>

namespace deft::session {

using config::Config;
using nlohmann::json;
using support::Result;

namespace {

/// Orders need no compilation, and older entries may not know all of them.
void addOtherOrders(std::vector<Config> &configs) {
  for (std::size_t i = 0, count = configs.size(); i < count; ++i) {
    for (const config::Order order : config::kAllOrders) {
      if (order == configs[i].order)
        continue;
      Config other = configs[i];
      other.order = order;
      configs.push_back(std::move(other));
    }
  }
}

/// The choice of each of the class's trees without an entry.
UntunedChoices untunedOf(const SessionContext &context, const TreesOfClass &trees,
                         const KnownConfigs &known) {
  config_cache::UntunedChooser chooser(context.input.variant, known.target, context.device.key.units,
                                       known.untuned, known.prices);
  chooser.setReach(exec::reachOf(context.input.variant, context.input.params));
  std::vector<Config> configs;
  configs.reserve(trees.samples.size());
  for (const Sample *sample : trees.samples)
    configs.push_back(chooser.choose(sample->tree));
  return {std::move(configs), trees.searched};
}

/// From the class's `done` event. A recording needs all times again.
std::optional<ClassReport> earlierReport(const SessionContext &context, const TreesOfClass &trees,
                                         const json *done) {
  if (!done || context.isRecording())
    return std::nullopt;
  std::optional<ClassReport> report = reportOfDone(*done, context.device.key.kind);
  if (report) {
    report->trees = trees.searched;
    report->heldOut = static_cast<int>(trees.samples.size()) - trees.searched;
  }
  return report;
}

/// The classes of one session, in turn.
class Turns {
public:
  Turns(const SessionContext &context, const std::vector<TreesOfClass> &classes, const KnownConfigs &known,
        EntryFile &file, std::optional<ClassClock::Time> end)
      : context_(context), classes_(classes), known_(known), file_(file), end_(end),
        openings_(context.input.variant, context.input.backend.isGpu()) {}

  Result<ClassResults> run() {
    const std::vector<int> turns = turnsOf(standingsOf(context_.journal, classes_));
    for (std::size_t turn = 0; turn < turns.size(); ++turn) {
      if (context_.listener.wantsToStop()) {
        results_.ended = Ended::Interrupted;
        break;
      }
      if (end_ && ClassClock::Clock::now() >= *end_) {
        results_.ended = Ended::Budget;
        break;
      }
      const std::span<const int> left(turns.begin() + static_cast<std::ptrdiff_t>(turn), turns.end());
      if (auto done = take(left); !done)
        return done.error();
    }
    addTheRest();
    return std::move(results_);
  }

private:
  const TreesOfClass &at(int index) const { return classes_[static_cast<std::size_t>(index)]; }

  /// Tunes the first class that is left.
  Result<void> take(std::span<const int> left) {
    const TreesOfClass &trees = at(left.front());
    const json *done = context_.journal.done(trees.treeClass.text());
    const std::optional<ClassReport> earlier = earlierReport(context_, trees, done);
    if (earlier && earlier->entry.isComplete) {
      keep(*earlier);
      return {};
    }
    const json earlierEvent = earlier ? *done : json();
    const ClassTask task = taskOf(left);
    const ClassOutcome outcome = tuneClass(context_, task);
    results_.made += outcome.made;
    results_.reused += outcome.reused;
    openings_.learn(trees, outcome.openSeconds);
    if (context_.listener.wantsToStop())
      results_.ended = Ended::Interrupted;
    else if (outcome.isCut)
      results_.ended = Ended::Budget;

    const ClassReport &report = outcome.report;
    if (earlier && !report.isDone) {
      keep(*earlier);
      return {};
    }
    if (earlier && outcome.isCut && report.candidates <= earlier->candidates) {
      keep(*earlier);
      context_.journal.write(earlierEvent); // with less time than before, this run found nothing new
      return {};
    }
    if (report.isDone)
      context_.listener.say(resultText(report));
    else if (!report.note.empty())
      results_.warnings.push_back(report.treeClass.text() + ": " + report.note);
    keep(report);
    return context_.isRecording() && results_.ended == Ended::Complete ? record(task, outcome)
                                                                       : Result<void>();
  }

  ClassTask taskOf(std::span<const int> left) const {
    const TreesOfClass &trees = at(left.front());
    std::optional<ClassClock::Time> deadline;
    if (end_)
      deadline = ClassClock::Clock::now() + ClassClock::duration(share(left, *end_));
    return {trees, left.front(), static_cast<int>(classes_.size()), untunedOf(context_, trees, known_),
            // The result for a class must not depend on the other classes of its shard.
            relatedTo(trees, context_.options.shard ? std::vector<ClassReport>() : results_.classes, known_,
                      context_.options.fromRelated),
            deadline, end_};
  }

  /// The search time, in seconds, of the first class that is left if the session ends at `end`.
  double share(std::span<const int> left, ClassClock::Time end) const {
    const std::vector<Standing> standings = standingsOf(context_.journal, classes_);
    std::vector<WaitingClass> waiting;
    waiting.reserve(left.size());
    for (const int i : left)
      waiting.push_back({standings[static_cast<std::size_t>(i)], openings_.expected(at(i))});
    return shareOf(waiting, std::chrono::duration<double>(end - ClassClock::Clock::now()).count());
  }

  void keep(const ClassReport &report) {
    results_.classes.push_back(report);
    if (!report.isDone)
      return;
    if (auto warning = file_.add(report.entry))
      results_.warnings.push_back(std::move(*warning));
  }

  Result<void> record(const ClassTask &task, const ClassOutcome &outcome) const {
    return writeRecording(
        recordingOf(context_.device.key, config_cache::VariantSignature::of(context_.input.variant),
                    task.trees, context_.space, task.untuned.first(), outcome.untunedUs, outcome.ratios),
        context_.options.recordFolder);
  }

  /// Adds the classes that this run did not reach, with earlier results; all in order.
  void addTheRest() {
    for (const TreesOfClass &trees : classes_) {
      if (std::any_of(results_.classes.begin(), results_.classes.end(),
                      [&](const ClassReport &report) { return report.treeClass == trees.treeClass; }))
        continue;
      ClassReport missing;
      missing.treeClass = trees.treeClass;
      missing.trees = trees.searched;
      keep(earlierReport(context_, trees, context_.journal.done(trees.treeClass.text())).value_or(missing));
    }
    std::sort(results_.classes.begin(), results_.classes.end(),
              [](const ClassReport &a, const ClassReport &b) { return a.treeClass < b.treeClass; });
  }

  const SessionContext &context_;
  const std::vector<TreesOfClass> &classes_;
  const KnownConfigs &known_;
  EntryFile &file_;
  std::optional<ClassClock::Time> end_;
  Openings openings_;
  ClassResults results_;
};

} // namespace

Result<ClassResults> tuneClasses(const SessionContext &context, const std::vector<TreesOfClass> &classes,
                                 const KnownConfigs &known, EntryFile &file,
                                 std::optional<ClassClock::Time> sessionEnd) {
  return Turns(context, classes, known, file, sessionEnd).run();
}

std::vector<Standing> standingsOf(const Journal &journal, const std::vector<TreesOfClass> &classes) {
  std::vector<Standing> standings;
  for (const TreesOfClass &trees : classes) {
    const json *done = journal.done(trees.treeClass.text());
    standings.push_back(!done                          ? Standing::New
                        : done->value("is_cut", false) ? Standing::Cut
                                                       : Standing::Done);
  }
  return standings;
}

Related relatedTo(const TreesOfClass &trees, const std::vector<ClassReport> &tuned, const KnownConfigs &known,
                  bool isFromRelated) {
  Related related = known.related.of(trees.treeClass, tuned);
  // The untuned choice of large trees has its own kernels; other classes need not wait for their compilation.
  const std::vector<Config> untuned = config_cache::usualOf(known.untuned);
  related.ofClass.insert(related.ofClass.end(), untuned.begin(), untuned.end());
  related.isKnown = related.isKnown && isFromRelated;
  if (isFromRelated && known.target)
    addOtherOrders(related.ofClass);
  return related;
}

} // namespace deft::session
