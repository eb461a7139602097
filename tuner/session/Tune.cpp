// A tuning session. Its classes from the outside in, each in the file of its name or in the one named:
//
//   tune()              a session: trees, space, known configs, journal, then all classes
//     SessionTrees      the trees by class (ClassTrees); Shard: those of this process
//     Journal           all that was measured, to resume from; SessionHead: which session it is
//     EntryFile         the file of configs that results go to
//     ChildProcesses    one that measures, and CompilePool; WarmUp gives it work before the first class
//     Turns             the classes in turn, each with a share of the budget (TuneClasses, TimeShare)
//       tuneClass()     a class: search, final and confirmation, within its time (ClassClock)
//         Search        races batch after batch, and keeps SearchScores (ClassSearch)
//           BatchChooser    the next batch: the journal's, else Related configs, else a strategy's
//           Race            a batch against the untuned choice, round by round
//           CandidateTimer  one measurement, by the journal or by a child (SideBySide)
//         Confirmation  a last race of Finalists, then the Verdict of a ClassJudge (TuneClass)
//
// ClassProgress reports a class's progress to a listener. DoneEvent is its result in the journal. Recording
// is a space that was measured as a whole. MergeShards joins the journals of several processes.
#include "tuner/session/Tune.h"

#include "runtime/config_cache/PriceFiles.h"
#include "tuner/measure/CompileService.h"
#include "tuner/session/SessionHead.h"
#include "tuner/session/TuneClasses.h"
#include "tuner/session/WarmUp.h"

#include <algorithm>
#include <sstream>

namespace deft::session {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

using SessionClock = ClassClock::Clock;

std::string sizeText(const space::SpaceSize &size) {
  std::ostringstream text;
  text << "space: " << size.all << " combinations, " << size.legal << " of them usable";
  const char *separator = " (";
  for (const auto &[name, count] : size.broken) {
    text << separator << name << " rules out " << count;
    separator = ", ";
  }
  if (!size.broken.empty())
    text << ")";
  return text.str();
}

measure::Work workOf(const TuneInput &input, const TuneOptions &options,
                     const std::vector<TreesOfClass> &classes) {
  measure::Work work;
  work.variant = input.variant;
  work.params = input.params;
  work.pages = options.pages;
  work.seed = options.seed;
  work.threads = options.threads;
  work.sharesCache = input.backend.isGpu();
  for (const TreesOfClass &own : classes) {
    measure::ClassTrees &trees = work.classes.emplace_back();
    trees.name = own.treeClass.text();
    for (const Sample *sample : own.samples)
      trees.trees.push_back(sample->tree);
  }
  return work;
}

ChildProcessOptions childProcessOptionsOf(const TuneInput &input, const TuneOptions &options) {
  constexpr double kGpuSeconds = 10, kCpuSeconds = 30;
  ChildProcessOptions limits;
  limits.timeSeconds = options.timeSeconds > 0 ? options.timeSeconds
                       : input.backend.isGpu() ? kGpuSeconds
                                               : kCpuSeconds;
  limits.checkSeconds = 2 * limits.timeSeconds; // includes the oracle
  if (input.backend.isGpu())
    limits.compilers = options.compilers > 0 ? options.compilers : std::max(1, options.threads - 1);
  return limits;
}

/// Compiles kernels for the start of all classes, unless no class needs more time.
void warmUpFor(const SessionContext &context, const std::vector<TreesOfClass> &classes,
               const KnownConfigs &known, SessionClock::time_point start) {
  const std::vector<Standing> standings = standingsOf(context.journal, classes);
  const bool isAllDone = std::all_of(standings.begin(), standings.end(),
                                     [](Standing standing) { return standing == Standing::Done; });
  if (isAllDone || !context.processes.compilers().isNeeded())
    return;
  std::vector<Related> related(classes.size()); // without prior knowledge, everything is searched
  for (std::size_t i = 0; i < classes.size() && context.options.fromRelated; ++i)
    related[i] = known.related.of(classes[i].treeClass, {});
  Status status;
  status.classes = static_cast<int>(classes.size());
  status.stage = "compile";
  const auto tell = [&](int left) {
    if (context.listener.wantsToStop())
      return false;
    status.left = left;
    if (context.listener.progress)
      context.listener.progress(status);
    return true;
  };
  warmUp(context.processes.compilers(), firstConfigs(known.untuned, related, context.space),
         start + ClassClock::duration(warmUpSeconds(context.options.budgetSeconds)), tell);
}

Result<Journal> openJournal(const SessionFacts &facts, const Listener &listener,
                            std::vector<std::string> &warnings) {
  const json head = sessionEvent(facts);
  const auto path = journalPath(facts.options, head);
  if (!path)
    return path.error();
  using config_cache::Owner;
  auto journal = Journal::open(*path, head, facts.options.isFresh,
                               facts.options.journal.empty() ? Owner::Deftc : Owner::User);
  if (!journal)
    return journal.error();
  if (!journal->setAside().empty())
    warnings.push_back("a line of the journal is broken: the rest is not used, and is kept in " +
                       journal->setAside());
  if (journal->isResumed()) {
    journal->write({{"event", "resumed"}, {"at", config_cache::timestamp()}});
    listener.say("goes on with " + *path);
  }
  return journal;
}

const char *endReason(Ended ended, bool isSaved) {
  return ended == Ended::Complete && !isSaved ? "not saved" : toString(ended);
}

Error notSaved(const Error &fault, const Journal &journal) {
  return {fault.code, fault.message,
          journal.warning().empty()
              ? "the journal has the results: the same session again saves them"
              : "the journal could not be written either: the same session measures again what is missing"};
}

} // namespace

Result<TuneReport> tune(const TuneInput &input, const TuneOptions &options, const Listener &listener) {
  const SessionClock::time_point start = SessionClock::now();
  TuneReport report;

  // The trees and the device. Child processes receive all their data before they are
  // forked.
  const SessionTrees trees = treesOf(input, options);
  if (trees.classes.empty())
    return Error{ErrorCode::Usage, "there is no tree to tune for", ""};
  if (options.shard)
    if (auto checked = checkShard(*options.shard); !checked)
      return checked.error();
  const std::vector<TreesOfClass> classes = ownClasses(trees.classes, options.shard);
  const measure::Work work = workOf(input, options, classes);
  const target::Target *target = nullptr;
  ChildProcesses processes([&] { return measure::makeMeasureService(work, input.backend.open); },
                           [&] { return measure::makeCompileService(*input.backend.source, *target); },
                           childProcessOptionsOf(input, options));
  const auto device = processes.device();
  if (!device)
    return device.error();
  if (input.backend.isGpu())
    target = targetOf(device->key);

  // The possible choices, and prior knowledge.
  auto untuned = input.backend.untuned(device->key);
  if (!untuned)
    return untuned.error();
  const config_cache::FoundPrices prices = config_cache::findPrices(options.places, device->key);
  for (config::Config &config : *untuned)
    config.cost = prices.prices.plans;
  const auto space = space::makeSpace(input.variant, {target, untuned->front().cost}, options.axes);
  if (!space)
    return space.error();
  const RelatedConfigs related(options.places, device->key, input.variant, target);
  report.device = device->key;
  report.driver = device->driver;
  report.signature = config_cache::VariantSignature::of(input.variant);
  report.space = space->size();
  report.shard = options.shard;
  report.sessionClasses = static_cast<int>(trees.classes.size());
  listener.say("device: " + report.device.text() + (report.driver.empty() ? "" : ", " + report.driver));
  listener.say(sizeText(report.space));
  if (report.space.legal == 0)
    return Error{ErrorCode::Usage, "nothing in the space can be used", "give other values with --axis"};

  // The file for results.
  auto file = EntryFile::open(options, device->key,
                              input.variant.schedule ? config_cache::legalityFor(input.variant, target)
                                                     : config_cache::LegalityCheck());
  if (!file)
    return file.error();
  report.configPath = file->path();
  if (report.configPath.empty() && !options.shard)
    report.warnings.push_back("there is no folder for configs: the results are only in the journal");
  auto journal = openJournal({input, options, *device, *space, report.space, untuned->front(), trees.classes},
                             listener, report.warnings);
  if (!journal)
    return journal.error();
  report.journal = journal->path();
  report.isResumed = journal->isResumed();

  const SessionContext context{input, options, listener, *device, *space, processes, *journal};
  const KnownConfigs known{*untuned, prices.prices, target, related};
  warmUpFor(context, classes, known, start);
  std::optional<ClassClock::Time> end;
  if (options.budgetSeconds > 0)
    end = start + ClassClock::duration(options.budgetSeconds);
  auto results = tuneClasses(context, classes, known, *file, end);
  if (!results)
    return results.error();

  report.classes = std::move(results->classes);
  report.ended = results->ended;
  report.made = results->made;
  report.reused = results->reused;
  report.warnings.insert(report.warnings.end(), results->warnings.begin(), results->warnings.end());
  report.written = file->written();
  report.restarts = processes.restarts();
  report.seconds = std::chrono::duration<double>(SessionClock::now() - start).count();
  journal->write({{"event", "end"},
                  {"reason", endReason(report.ended, !file->error())},
                  {"made", report.made},
                  {"reused", report.reused},
                  {"seconds", report.seconds}});
  journal->sync();
  if (!journal->warning().empty())
    report.warnings.push_back(journal->warning());
  if (file->error())
    report.notSaved = notSaved(*file->error(), *journal);
  return report;
}

} // namespace deft::session
