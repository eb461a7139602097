#include "tools/deftc/compare/CompareSession.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/spec/Names.h"
#include "runtime/exec/ParamRanges.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/cpu/Processors.h"
#include "runtime/plan/Planner.h"
#include "tools/deftc/common/ProgramInput.h"
#include "tools/deftc/common/Progress.h"
#include "tools/deftc/run/Memory.h"
#include "tools/deftc/run/RunBackend.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>

namespace deft::cli {

using support::Error;
using support::ErrorCode;
using support::Result;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int kMostRounds = 15, kFewestRounds = 3;
constexpr double kEnoughSeconds = 20; ///< of timing one tree, where nobody says how many rounds
constexpr int kRepeats = 3;           ///< of a row in a round

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double medianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// A tree by what is in the file: its name may be any.
bool isTreeFile(const std::string &path) {
  constexpr std::size_t kMost = 4096;
  std::ifstream file(path, std::ios::binary);
  std::string head(kMost, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return head.find("\"deftc-tree\"") != std::string::npos;
}

struct NamedProgram {
  std::string name;
  program::Program program;
};

/// One way to run one program, which stays as it is.
struct Racer {
  CompareRow row;
  RunBackend *backend = nullptr;
  plan::Plan plan;
  std::vector<double> us;

  bool isRunnable() const { return row.fault.empty(); }
};

/// A program on a tree: its inputs and where it runs.
struct Subject {
  std::string treeName;
  const NamedProgram *named = nullptr;
  tree::KvTree tree;
  exec::Inputs inputs;
  plan::Reach reach;
  std::unique_ptr<RunBackend> untuned, tuned; ///< tuned null: nothing is for this tree
};

class Session {
public:
  Session(Context &context, const CompareOptions &options) : context_(context), options_(options) {}

  Result<CompareReport> run() {
    if (auto opened = openAll(); !opened)
      return opened.error();
    for (NamedTree &tree : trees_)
      if (auto compared = compareOn(tree); !compared)
        return compared.error();
    return std::move(report_);
  }

private:
  Result<void> openAll() {
    std::vector<std::string> treeFiles;
    for (const std::string &input : options_.inputs) {
      if (isTreeFile(input)) {
        treeFiles.push_back(input);
        continue;
      }
      auto program = openProgram(context_, input, "");
      if (!program)
        return program.error();
      programs_.push_back(
          std::make_unique<NamedProgram>(NamedProgram{program->variant().name, std::move(*program)}));
      files_.push_back(input);
    }
    if (programs_.empty())
      return Error{ErrorCode::Usage, "no spec and no package is given", "name one, as llama3_8b"};
    nameApart();
    if (options_.tree.isGiven() || treeFiles.empty())
      if (auto opened = openOne(options_.tree); !opened)
        return opened;
    for (const std::string &file : treeFiles) {
      TreeOptions one;
      one.tree = file;
      if (auto opened = openOne(one); !opened)
        return opened;
    }
    return checkParams();
  }

  Result<void> openOne(const TreeOptions &options) {
    auto tree = openTree(context_, options);
    if (!tree)
      return tree.error();
    trees_.push_back(std::move(*tree));
    return {};
  }

  /// Two packages of one spec are told apart by their files.
  void nameApart() {
    for (std::size_t i = 0; i < programs_.size(); ++i)
      for (std::size_t j = 0; j < programs_.size(); ++j)
        if (i != j && programs_[i]->program.variant().name == programs_[j]->program.variant().name)
          programs_[i]->name = programs_[i]->program.variant().name + " of " +
                               std::filesystem::path(files_[i]).filename().string();
  }

  /// Each spec takes the parameters that it has.
  std::vector<std::string> paramsOf(const spec::Variant &variant) const {
    std::vector<std::string> own;
    for (const std::string &assignment : options_.params)
      if (std::any_of(variant.params.begin(), variant.params.end(),
                      [&](const spec::Param &param) { return assignment.starts_with(param.name + "="); }))
        own.push_back(assignment);
    return own;
  }

  /// What none of them has is a mistake, and the first one says so.
  Result<void> checkParams() const {
    std::size_t taken = 0;
    for (const std::string &assignment : options_.params)
      taken += std::any_of(programs_.begin(), programs_.end(), [&](const auto &one) {
        const auto own = paramsOf(one->program.variant());
        return std::find(own.begin(), own.end(), assignment) != own.end();
      });
    if (taken == options_.params.size())
      return {};
    const auto values = exec::bindKnownParams(programs_.front()->program.variant(), options_.params);
    return values ? Result<void>() : values.error();
  }

  Result<void> compareOn(NamedTree &tree) {
    racers_.clear();
    subjects_.clear();
    for (const auto &named : programs_)
      if (auto opened = openSubject(tree, *named); !opened)
        return opened;
    if (auto timed = time(); !timed)
      return timed;
    if (options_.isChecked)
      if (auto checked = check(); !checked)
        return checked;
    for (Racer &racer : racers_)
      report_.rows.push_back(std::move(racer.row));
    return {};
  }

  Result<void> openSubject(const NamedTree &tree, const NamedProgram &named) {
    auto subject = std::make_unique<Subject>();
    subject->treeName = tree.name;
    subject->named = &named;
    subject->tree = tree.tree;
    if (auto made = makeInputs(*subject); !made)
      return made;
    const int threads = threadsOf();
    const auto open = [&](bool isUntuned) {
      const ConfigSource configs{options_.config, isUntuned};
      return openBackend(context_, {named.program, subject->tree, configs}, options_.backend, threads);
    };
    auto untuned = open(/*isUntuned=*/true);
    if (!untuned)
      return untuned.error();
    subject->untuned = std::move(*untuned);
    auto tuned = open(/*isUntuned=*/false);
    if (!tuned)
      return tuned.error();
    subject->tuned = std::move(*tuned);
    subject->untuned->setReach(subject->reach);
    subject->tuned->setReach(subject->reach);
    const config_cache::Selection &selection = subject->tuned->choose(subject->tree);
    if (auto usable = checkGiven(selection); !usable)
      return usable;
    if (selection.rule() == config_cache::Rule::Heuristic) {
      subject->tuned.reset();
      report_.notes.push_back("nothing is tuned for " + named.name + " on " + tree.name +
                              "; `deftc tune` would try more than partitions");
    }
    report_.backend = subject->untuned->name();
    report_.device = subject->untuned->device();
    for (RunBackend *backend : {subject->tuned.get(), subject->untuned.get()})
      if (backend)
        if (auto added = addRacers(*subject, *backend, backend == subject->tuned.get()); !added)
          return added;
    subjects_.push_back(std::move(subject));
    return {};
  }

  int threadsOf() const { return options_.threads > 0 ? options_.threads : exec::usableProcessors(); }

  Result<void> makeInputs(Subject &subject) {
    const spec::Variant &variant = subject.named->program.variant();
    auto params = openParams(context_, variant, paramsOf(variant));
    if (!params)
      return params.error();
    subject.reach = exec::reachOf(variant, *params);
    if (auto fits = checkMemory("the inputs of " + subject.named->name,
                                static_cast<double>(subject.tree.tokens()) * variant.kvHeads *
                                    variant.tensors.cacheBytes());
        !fits)
      return fits;
    const Underway underway(context_, "making inputs");
    tree::PlacementOptions placement;
    placement.pageSize = exec::pageSizeOf(variant);
    placement.seed = options_.tree.seed;
    if (options_.pages == "scattered")
      placement.order = tree::PlacementOrder::Scattered;
    const auto placed = tree::placeInCache(subject.tree, placement);
    if (!placed)
      return placed.error();
    subject.inputs = exec::makeRandomInputs(variant, subject.tree, *placed, std::move(*params),
                                            options_.tree.seed, threadsOf());
    return {};
  }

  /// The config as it was chosen, then its kernels with every other partition.
  Result<void> addRacers(Subject &subject, RunBackend &backend, bool isTuned) {
    if (auto loaded = backend.load(subject.inputs); !loaded)
      return loaded;
    const config::Config chosen = backend.choose(subject.tree).config();
    addRacer(subject, backend, chosen, isTuned, /*isChosen=*/true);
    const auto names = options_.partitions.empty() ? spec::partitionNames() : options_.partitions;
    for (const std::string &name : names) {
      config::Config config = chosen;
      config.partition = *config::partitionFromName(name);
      if (config.partition != chosen.partition)
        addRacer(subject, backend, config, isTuned, /*isChosen=*/false);
    }
    return {};
  }

  void addRacer(const Subject &subject, RunBackend &backend, const config::Config &config, bool isTuned,
                bool isChosen) {
    const Underway underway(context_, "planning " + config::partitionName(config.partition));
    Racer racer;
    racer.backend = &backend;
    CompareRow &row = racer.row;
    row.spec = subject.named->name;
    row.tree = subject.treeName;
    row.isTuned = isTuned;
    row.isChosen = isChosen;
    row.asked = config::partitionName(config.partition);
    const auto kind = backend.name() == "cpu" ? config::DeviceKind::Cpu : config::DeviceKind::Gpu;
    const auto facts = plan::VariantFacts::of(subject.named->program.variant(), kind, subject.reach);
    plan::Planner planner;
    std::vector<double> times;
    constexpr int kPlans = 3;
    for (int i = 0; i < kPlans && racer.isRunnable(); ++i) {
      const auto start = Clock::now();
      if (auto made = planner.make(subject.tree, facts, config, backend.blocks(), racer.plan); !made)
        row.fault = made.error().message;
      times.push_back(1e6 * secondsSince(start));
    }
    if (racer.isRunnable()) {
      const plan::PlanSummary summary = plan::summarize(racer.plan, facts);
      row.planUs = medianOf(times);
      row.partition = config::partitionName(racer.plan.partition);
      row.chunkTokens = racer.plan.chunkTokens;
      row.items = summary.items;
      row.itemTokens = summary.itemTokens;
      row.partialSlots = summary.partialSlots;
    }
    racers_.push_back(std::move(racer));
  }

  /// All of them in turn, in another order every other round.
  Result<void> time() {
    Progress progress(context_, "timing " + subjects_.front()->treeName);
    exec::Outputs outputs;
    const auto start = Clock::now();
    int rounds = options_.rounds > 0 ? options_.rounds : kMostRounds;
    const auto count = std::ssize(racers_);
    for (int round = 0; round < rounds; ++round) {
      for (long long i = 0; i < count; ++i) {
        progress.at(round * count + i, rounds * count);
        Racer &racer = racers_[static_cast<std::size_t>(round % 2 == 0 ? i : count - 1 - i)];
        if (!racer.isRunnable())
          continue;
        const auto times = racer.backend->run(racer.plan, outputs, kRepeats);
        if (!times)
          return times.error();
        racer.us.push_back(times->medianUs);
      }
      if (round == 0 && options_.rounds == 0)
        rounds = std::clamp(static_cast<int>(kEnoughSeconds / std::max(secondsSince(start), 1e-3)),
                            kFewestRounds, kMostRounds);
    }
    report_.rounds = rounds;
    for (Racer &racer : racers_)
      if (racer.isRunnable()) {
        racer.row.medianUs = medianOf(racer.us);
        racer.row.leastUs = *std::min_element(racer.us.begin(), racer.us.end());
        racer.row.mostUs = *std::max_element(racer.us.begin(), racer.us.end());
      }
    return {};
  }

  /// Of each row some queries, those that a few seconds are enough for.
  Result<void> check() {
    constexpr long long kPairsPerThread = 2'000'000;
    constexpr std::chrono::seconds kMostOfRow(3);
    Progress progress(context_, "checking");
    exec::Outputs outputs;
    long long done = 0;
    for (Racer &racer : racers_) {
      progress.at(done++, std::ssize(racers_));
      if (!racer.isRunnable())
        continue;
      if (auto ran = racer.backend->runOnce(racer.plan, outputs); !ran)
        return ran;
      const auto subject = std::find_if(subjects_.begin(), subjects_.end(), [&](const auto &one) {
        return one->untuned.get() == racer.backend || one->tuned.get() == racer.backend;
      });
      racer.row.check = reference::check((*subject)->named->program.variant(), (*subject)->tree,
                                         (*subject)->inputs, outputs,
                                         {.threads = threadsOf(),
                                          .mostRowTokens = kPairsPerThread * threadsOf(),
                                          .deadline = Clock::now() + kMostOfRow});
    }
    return {};
  }

  Context &context_;
  const CompareOptions &options_;
  std::vector<std::unique_ptr<NamedProgram>> programs_;
  std::vector<std::string> files_; ///< of each program, as it was given
  std::vector<NamedTree> trees_;
  std::vector<std::unique_ptr<Subject>> subjects_; ///< of the tree at hand
  std::vector<Racer> racers_;
  CompareReport report_;
};

} // namespace

std::vector<std::vector<const CompareRow *>> CompareReport::byTree() const {
  std::vector<std::vector<const CompareRow *>> trees;
  for (const CompareRow &row : rows) {
    if (trees.empty() || trees.back().front()->tree != row.tree)
      trees.emplace_back();
    trees.back().push_back(&row);
  }
  return trees;
}

bool CompareReport::isRight() const {
  return std::none_of(rows.begin(), rows.end(),
                      [](const CompareRow &row) { return row.check && !row.check->passed(); });
}

Result<CompareReport> compareSession(Context &context, const CompareOptions &options) {
  return Session(context, options).run();
}

} // namespace deft::cli
