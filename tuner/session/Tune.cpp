#include "tuner/session/Tune.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/support/AtomicFile.h"
#include "runtime/config_cache/UntunedChooser.h"
#include "runtime/config_cache/VariantLegality.h"
#include "runtime/exec/ParamRanges.h"
#include "tuner/measure/CompileService.h"
#include "tuner/search/TypicalKernels.h"
#include "tuner/session/ClassTuner.h"
#include "tuner/session/DoneEvent.h"
#include "tuner/session/Recording.h"
#include "tuner/session/SessionHead.h"
#include "tuner/session/TimeShare.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <sstream>

namespace deft::session {

using config_cache::DeviceKey;
using config_cache::TreeClass;
using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

using Clock = std::chrono::steady_clock;

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

class Session {
public:
  Session(const TuneInput &input, const TuneOptions &options, const Listener &listener)
      : input_(input), options_(options), listener_(listener) {}

  Result<TuneReport> run() {
    for (auto step : {&Session::openLab, &Session::openSpace, &Session::openConfigs, &Session::openJournal})
      if (auto done = (this->*step)(); !done)
        return done.error();
    if (auto tuned = tuneClasses(); !tuned)
      return tuned.error();
    return finish();
  }

private:
  plan::Reach reach() const { return exec::reachOf(input_.variant, input_.params); }

  Result<void> openLab() {
    // A recording is of what has a name.
    samples_ = options_.addsSimilar && options_.recordFolder.empty()
                   ? withSimilar(input_.samples, reach(), options_.mostTrees)
                   : input_.samples;
    classes_ = groupSamples(samples_, reach(), options_.mostTrees);
    if (classes_.empty())
      return Error{ErrorCode::Usage, "there is no tree to tune for", ""};
    work_.variant = input_.variant;
    work_.params = input_.params;
    work_.pages = options_.pages;
    work_.seed = options_.seed;
    work_.threads = options_.threads;
    work_.sharesCache = input_.backend.kind == Backend::Kind::Cuda;
    for (const TreesOfClass &one : classes_) {
      measure::ClassTrees trees{one.treeClass.text(), {}};
      for (const Sample *sample : one.samples)
        trees.trees.push_back(sample->tree);
      work_.classes.push_back(std::move(trees));
    }
    LabOptions lab;
    const bool isGpu = input_.backend.kind == Backend::Kind::Cuda;
    lab.timeSeconds = options_.timeSeconds > 0 ? options_.timeSeconds : isGpu ? 10 : 30;
    lab.checkSeconds = 2 * lab.timeSeconds; // the oracle's share
    if (input_.backend.source)
      lab.compilers = options_.compilers > 0 ? options_.compilers : std::max(1, options_.threads - 1);
    lab_.emplace([this] { return measure::makeMeasureService(work_, input_.backend.open); },
                 [this] { return measure::makeCompileService(*input_.backend.source, *target_); }, lab);
    const auto device = lab_->device();
    if (!device)
      return device.error();
    auto key = config_cache::deviceKeyFromJson(device->at("key"));
    if (!key)
      return key.error();
    report_.device = std::move(*key);
    report_.driver = device->value("driver", "");
    return {};
  }

  Result<void> openSpace() {
    auto untuned = input_.backend.untuned(report_.device);
    if (!untuned)
      return untuned.error();
    untuned_ = untuned->front();
    allUntuned_ = std::move(*untuned);
    if (input_.backend.kind == Backend::Kind::Cuda)
      target_ = targetOf(report_.device);
    auto space = space::makeSpace(input_.variant, {target_, untuned_.cost}, options_.axes);
    if (!space)
      return space.error();
    space_.emplace(std::move(*space));
    related_.emplace(options_.places, report_.device, input_.variant, target_);
    report_.space = space_->size();
    report_.signature = config_cache::VariantSignature::of(input_.variant);
    note("device: " + report_.device.text() + (report_.driver.empty() ? "" : ", " + report_.driver));
    note(sizeText(report_.space));
    if (report_.space.legal == 0)
      return Error{ErrorCode::Usage, "nothing in the space can be used", "give other values with --axis"};
    return {};
  }

  Result<void> openConfigs() {
    report_.configPath = options_.configPath;
    if (report_.configPath.empty() && !options_.places.userFolder.empty())
      report_.configPath =
          (std::filesystem::path(options_.places.userFolder) / report_.device.fileName()).string();
    if (report_.configPath.empty())
      report_.warnings.push_back("there is no place for configs: the results are in the journal alone");
    else if (auto mergeable = config_cache::checkMergeable(report_.configPath, place(), report_.device);
             !mergeable)
      return mergeable.error();
    return {};
  }

  /// A file that is named is somebody's; without a name it is the cache's.
  config_cache::Place place() const {
    return options_.configPath.empty() ? config_cache::Place::Cache : config_cache::Place::Named;
  }

  Result<void> openJournal() {
    const json session = sessionEvent({input_, options_, report_, *space_, untuned_, classes_});
    const auto found = journalPath(options_, session);
    if (!found)
      return found.error();
    const std::string &path = *found;
    auto journal = Journal::open(path, session, options_.isFresh);
    if (!journal)
      return journal.error();
    journal_.emplace(std::move(*journal));
    report_.journal = path;
    report_.isResumed = journal_->isResumed();
    if (!journal_->setAside().empty())
      report_.warnings.push_back(
          "a line of the journal is broken: what follows it is not used, and is kept in " +
          journal_->setAside());
    if (report_.isResumed) {
      journal_->write({{"event", "resumed"}, {"at", config_cache::timestamp()}});
      note("goes on with " + path);
    }
    return {};
  }

  /// Compiles what every class begins with before the first one's time runs: that would be over before it
  /// had a kernel to race. What is left at the end of it goes on being compiled.
  void warmUp() {
    if (!input_.backend.source)
      return;
    std::vector<config::Config> configs = allUntuned_;
    bool isSearched = false;
    for (const TreesOfClass &own : classes_) {
      const Related related = related_->of(own.treeClass, {});
      for (const auto *known : {&related.ofClass, &related.neighbours})
        if (options_.fromRelated)
          configs.insert(configs.end(), known->begin(), known->end());
      isSearched = isSearched || !options_.fromRelated || !related.isKnown;
    }
    for (std::size_t shape = 0; isSearched && shape < space_->shapes().size(); ++shape)
      for (const space::Point &kernels : search::typicalKernels(*space_, static_cast<int>(shape)))
        configs.push_back(space_->configOf(kernels));
    lab_->compilers().ahead(configs);
    constexpr double kShare = 0.2, kMostSeconds = 30;
    const double most =
        options_.budgetSeconds > 0 ? std::min(kShare * options_.budgetSeconds, kMostSeconds) : kMostSeconds;
    const auto left = [&] {
      return std::count_if(configs.begin(), configs.end(),
                           [&](const config::Config &config) { return !lab_->compilers().has(config); });
    };
    while (left() > 0 && Clock::now() < start_ + seconds(most) && !isCancelled()) {
      if (listener_.progress)
        listener_.progress(
            {0, static_cast<int>(classes_.size()), "", "compile", 0, static_cast<int>(left()), 0, 0, -1});
      constexpr double kLookAgain = 0.2;
      lab_->compilers().wait(kLookAgain);
    }
  }

  /// All classes have a result that needs no more time.
  bool isAllDone() const {
    return std::all_of(classes_.begin(), classes_.end(),
                       [&](const TreesOfClass &own) { return standOf(own) == Waiting::Stands::Done; });
  }

  Waiting::Stands standOf(const TreesOfClass &own) const {
    const json *done = journal_->done(own.treeClass.text());
    return !done                          ? Waiting::Stands::New
           : done->value("is_cut", false) ? Waiting::Stands::Cut
                                          : Waiting::Stands::Done;
  }

  /// What each of the class's trees gets without an entry.
  std::vector<config::Config> untunedOf(const TreesOfClass &own) const {
    config_cache::UntunedChooser chooser(input_.variant, target_, report_.device.units, allUntuned_);
    chooser.setReach(reach());
    std::vector<config::Config> configs;
    for (const Sample *sample : own.samples)
      configs.push_back(chooser.choose(sample->tree));
    return configs;
  }

  /// An order costs no compilation, and an older entry may not know of all.
  static void addOtherOrders(std::vector<config::Config> &configs) {
    for (std::size_t i = 0, count = configs.size(); i < count; ++i) {
      for (const config::Order order : config::kAllOrders) {
        if (order == configs[i].order)
          continue;
        config::Config other = configs[i];
        other.order = order;
        configs.push_back(std::move(other));
      }
    }
  }

  Related relatedTo(const TreesOfClass &own) const {
    Related related = related_->of(own.treeClass, report_.classes);
    related.ofClass.insert(related.ofClass.end(), allUntuned_.begin(), allUntuned_.end());
    related.isKnown = related.isKnown && options_.fromRelated;
    if (options_.fromRelated && target_)
      addOtherOrders(related.ofClass);
    return related;
  }

  Result<void> tuneClasses() {
    if (!isAllDone())
      warmUp();
    SessionState state{input_,  options_,       listener_,      *lab_, *journal_,
                       *space_, report_.device, report_.driver, {}};
    std::optional<Clock::time_point> end;
    if (options_.budgetSeconds > 0)
      end = start_ + seconds(options_.budgetSeconds);
    const int count = static_cast<int>(classes_.size());
    const std::vector<int> order = orderOfClasses();
    for (std::size_t at = 0; at < order.size(); ++at) {
      if (isCancelled()) {
        report_.ended = Ended::Interrupted;
        break;
      }
      if (end && Clock::now() >= *end) {
        report_.ended = Ended::Budget;
        break;
      }
      const int i = order[at];
      const TreesOfClass &own = classes_[static_cast<std::size_t>(i)];
      // What an earlier run of this session came to; one that had too little time goes on.
      const json *done = journal_->done(own.treeClass.text());
      const json before = done ? *done : json::object();
      if (done && !before.value("is_cut", false) && takeFromJournal(own, before))
        continue;
      std::optional<Clock::time_point> deadline;
      if (end)
        deadline = Clock::now() + seconds(share(order, at, *end));
      state.untuned = untunedOf(own);
      untuned_ = state.untuned.front();
      ClassTuner tuner(state, own, i, count, relatedTo(own), deadline, end);
      ClassReport made = tuner.run();
      openings_.learn(own, tuner.openSeconds());
      if (isCancelled())
        report_.ended = Ended::Interrupted;
      else if (tuner.isCut())
        report_.ended = Ended::Budget;
      if (made.isDone && tuner.isCut() && done && made.candidates <= before.value("candidates", 0) &&
          takeFromJournal(own, before)) {
        journal_->write(before); // with even less time than then, nothing was learnt: that stays the result
        continue;
      }
      if (!made.isDone && done && takeFromJournal(own, before))
        continue;
      if (made.isDone) {
        noteDone(made);
        save(made.entry);
      } else if (!made.note.empty()) {
        report_.warnings.push_back(made.treeClass.text() + ": " + made.note);
      }
      report_.classes.push_back(std::move(made));
      if (!options_.recordFolder.empty() && report_.ended == Ended::Complete)
        if (auto written = record(tuner, own); !written)
          return written;
    }
    addTheRest();
    report_.made = state.made;
    report_.reused = state.reused;
    return {};
  }

  /// Those that have no result yet come first, the small before the large.
  std::vector<int> orderOfClasses() const {
    std::vector<int> order(classes_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_partition(order.begin(), order.end(), [&](int i) {
      return standOf(classes_[static_cast<std::size_t>(i)]) == Waiting::Stands::New;
    });
    return order;
  }

  /// Seconds of the next class to search in.
  double share(const std::vector<int> &order, std::size_t at, Clock::time_point end) const {
    std::vector<Waiting> waiting;
    for (std::size_t later = at; later < order.size(); ++later) {
      const TreesOfClass &own = classes_[static_cast<std::size_t>(order[later])];
      waiting.push_back({standOf(own), openings_.expected(own)});
    }
    return shareOf(waiting, std::chrono::duration<double>(end - Clock::now()).count());
  }

  /// The classes that this run did not come to, with what an earlier one knew of them; all in their order.
  void addTheRest() {
    for (const TreesOfClass &own : classes_) {
      const auto isOwn = [&](const ClassReport &report) { return report.treeClass == own.treeClass; };
      if (std::any_of(report_.classes.begin(), report_.classes.end(), isOwn))
        continue;
      const json *done = journal_->done(own.treeClass.text());
      if (done && takeFromJournal(own, *done))
        continue;
      report_.classes.emplace_back();
      report_.classes.back().treeClass = own.treeClass;
      report_.classes.back().trees = own.searched;
    }
    std::sort(report_.classes.begin(), report_.classes.end(),
              [](const ClassReport &a, const ClassReport &b) { return a.treeClass < b.treeClass; });
  }

  /// Takes the `done` event of an earlier run for the class's result.
  bool takeFromJournal(const TreesOfClass &own, const json &done) {
    if (!options_.recordFolder.empty())
      return false;
    std::optional<ClassReport> before = reportOfDone(done, report_.device.kind);
    if (!before)
      return false;
    ClassReport &report = *before;
    report.trees = own.searched;
    report.heldOut = static_cast<int>(own.samples.size()) - own.searched;
    report_.classes.push_back(report);
    save(report.entry);
    return true;
  }

  /// An entry that this spec's schedule does not admit, and that beats the untuned choice in no more time, is
  /// for others to keep.
  bool isForAnotherSchedule(const config_cache::Entry &entry) const {
    if (!input_.variant.schedule) // which admits all
      return false;
    const auto isLegal = config_cache::legalityFor(input_.variant, target_);
    const config_cache::FileReading reading = config_cache::readConfigFile(report_.configPath);
    return std::any_of(
        reading.file.entries.begin(), reading.file.entries.end(), [&](const config_cache::Entry &old) {
          return keyOf(old) == keyOf(entry) && !old.keepsDefault &&
                 old.provenance.kernelHash == entry.provenance.kernelHash && !isLegal(old.config) &&
                 (entry.keepsDefault || old.measurement.tunedUs <= entry.measurement.tunedUs);
        });
  }

  void save(const config_cache::Entry &entry) {
    if (report_.configPath.empty())
      return;
    if (isForAnotherSchedule(entry)) {
      report_.warnings.push_back(entry.treeClass.text() +
                                 ": the entry that is there is of another schedule, and no slower: it stays");
      return;
    }
    unsaved_.push_back(entry); // with those that could not be before
    const auto written = config_cache::mergeWrite(report_.configPath, place(), report_.device, unsaved_);
    if (!written) {
      saveError_ = written.error();
      return;
    }
    saveError_.reset();
    unsaved_.clear();
    report_.written.added += written->added;
    report_.written.replaced += written->replaced;
    report_.written.unchanged += written->unchanged;
    if (written->kept > 0)
      report_.warnings.push_back(
          entry.treeClass.text() +
          ": the entry that is there is of a whole search, this one was cut short: it stays");
    if (!written->setAside.empty())
      report_.written.setAside = written->setAside;
  }

  Result<void> record(const ClassTuner &tuner, const TreesOfClass &own) {
    Recording recording{report_.device, report_.signature, own.treeClass,     {},
                        *space_,        untuned_,          tuner.untunedUs(), {}};
    for (int i = 0; i < own.searched; ++i)
      recording.trees.emplace_back(own.samples[static_cast<std::size_t>(i)]->name,
                                   own.samples[static_cast<std::size_t>(i)]->seed);
    const std::map<std::string, double> ratios = tuner.recordedRatios();
    for (const space::Point &point : space_->points()) {
      const std::string id = space::configId(space_->configOf(point));
      const auto found = ratios.find(id);
      recording.ratios.push_back(found != ratios.end()             ? found->second
                                 : id == space::configId(untuned_) ? 1.0
                                                                   : 0.0);
    }
    std::error_code ignored;
    std::filesystem::create_directories(options_.recordFolder, ignored);
    const auto path = std::filesystem::path(options_.recordFolder) / recordingName(recording);
    return support::writeFileAtomically(path.string(), toJson(recording).dump() + "\n");
  }

  Result<TuneReport> finish() {
    report_.seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    report_.restarts = lab_->restarts();
    const char *reason = report_.ended == Ended::Budget        ? "budget"
                         : report_.ended == Ended::Interrupted ? "interrupted"
                         : saveError_                          ? "not saved"
                                                               : "complete";
    journal_->write({{"event", "end"},
                     {"reason", reason},
                     {"made", report_.made},
                     {"reused", report_.reused},
                     {"seconds", report_.seconds}});
    journal_->sync();
    if (!journal_->warning().empty())
      report_.warnings.push_back(journal_->warning());
    if (saveError_)
      report_.notSaved =
          Error{saveError_->code, saveError_->message,
                journal_->warning().empty()
                    ? "the journal has the results: the same session again saves them"
                    : "the journal could not be written either: what it lacks is measured again "
                      "by the same session"};
    return std::move(report_);
  }

  void noteDone(const ClassReport &report) {
    std::ostringstream text;
    text.setf(std::ios::fixed);
    text.precision(2);
    text << report.treeClass.text() << ": ";
    if (report.entry.keepsDefault)
      text << "the untuned config stays: " << report.note;
    else
      text << report.gain << " times as fast as untuned"
           << (report.entry.onlyFor.empty() ? "" : ", on trees like those given only");
    if (!report.entry.isComplete)
      text << "; the search was cut short by its time budget";
    note(text.str());
  }

  static Clock::duration seconds(double value) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(value));
  }
  void note(const std::string &text) {
    if (listener_.note)
      listener_.note(text);
  }
  bool isCancelled() const { return listener_.isCancelled && listener_.isCancelled(); }

  const TuneInput &input_;
  const TuneOptions &options_;
  const Listener &listener_;
  Clock::time_point start_ = Clock::now();
  Openings openings_{input_.variant, input_.backend.kind == Backend::Kind::Cuda};
  std::vector<Sample> samples_;
  std::vector<TreesOfClass> classes_; ///< of samples_
  measure::Work work_;
  const target::Target *target_ = nullptr;
  config::Config untuned_; ///< where no tree is known, or of the class that is being tuned
  std::vector<config::Config> allUntuned_;
  std::optional<space::Space> space_;
  std::optional<RelatedConfigs> related_;
  std::optional<Lab> lab_;
  std::optional<Journal> journal_;
  std::vector<config_cache::Entry> unsaved_;
  std::optional<Error> saveError_; ///< of unsaved_
  TuneReport report_;
};

} // namespace

Result<TuneReport> tune(const TuneInput &input, const TuneOptions &options, const Listener &listener) {
  return Session(input, options, listener).run();
}

} // namespace deft::session
