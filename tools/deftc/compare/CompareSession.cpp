#include "tools/deftc/compare/CompareSession.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/spec/Names.h"
#include "runtime/exec/ParamRanges.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/SizedParams.h"
#include "runtime/exec/cpu/Processors.h"
#include "runtime/plan/Planner.h"
#include "tools/deftc/common/ProgramInput.h"
#include "tools/deftc/common/Progress.h"
#include "tools/deftc/compare/CompareInputs.h"
#include "tools/deftc/compare/CompareRace.h"
#include "tools/deftc/run/Memory.h"
#include "tuner/measure/Samples.h"

#include <algorithm>
#include <chrono>
#include <memory>

namespace deft::cli {

using support::Result;
using Clock = std::chrono::steady_clock;

namespace {

/// A program on a tree: its inputs and where it runs.
struct Subject {
  std::string treeName;
  const NamedProgram *named = nullptr;
  tree::KvTree tree;
  exec::Inputs inputs;
  plan::Reach reach;
  std::unique_ptr<RunBackend> untuned, tuned; ///< tuned null: nothing is for this tree
};

class Comparison {
public:
  Comparison(Context &context, const CompareOptions &options) : context_(context), options_(options) {}

  Result<CompareReport> run() {
    auto inputs = openCompareInputs(context_, options_);
    if (!inputs)
      return inputs.error();
    for (const NamedTree &tree : inputs->trees)
      if (auto compared = compareOn(tree, inputs->programs); !compared)
        return compared.error();
    return std::move(report_);
  }

private:
  Result<void> compareOn(const NamedTree &tree, const std::vector<std::unique_ptr<NamedProgram>> &programs) {
    racers_.clear();
    subjects_.clear();
    for (const auto &named : programs)
      if (auto opened = openSubject(tree, *named); !opened)
        return opened;
    const auto rounds = race(context_, racers_, options_.rounds, "timing " + tree.name);
    if (!rounds)
      return rounds.error();
    if (options_.isChecked)
      if (auto checked = check(); !checked)
        return checked;
    for (CompareRacer &racer : racers_) {
      racer.row.rounds = *rounds;
      report_.rows.push_back(std::move(racer.row));
    }
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
    const config_cache::Ruling &ruling = subject->tuned->choose(subject->tree);
    if (auto usable = checkGiven(ruling); !usable)
      return usable;
    if (ruling.rule() == config_cache::Rule::Heuristic) {
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
    auto params = openParams(context_, variant, paramsOf(variant, options_.params));
    if (!params)
      return params.error();
    subject.reach = exec::reachOf(variant, *params);
    if (auto fits = checkMemory("the inputs of " + subject.named->name,
                                static_cast<double>(subject.tree.tokens()) * variant.kvHeads *
                                    variant.tensors.cacheBytes());
        !fits)
      return fits;
    if (auto fits = exec::checkSizedParams(variant, subject.tree, *params); !fits)
      return fits;
    const Underway underway(context_, "making inputs");
    tree::PlacementOptions placement;
    placement.pageSize = variant.cache.pageSize;
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
    CompareRacer racer;
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
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
    if (racer.isRunnable()) {
      const plan::PlanSummary summary = plan::summarize(racer.plan, facts);
      row.planUs = measure::median(times);
      row.partition = config::partitionName(racer.plan.partition);
      row.chunkTokens = racer.plan.chunkTokens;
      row.items = summary.items;
      row.itemTokens = summary.itemTokens;
      row.partialSlots = summary.partialSlots;
    }
    racers_.push_back(std::move(racer));
  }

  /// Of each row some queries, those that a few seconds are enough for.
  Result<void> check() {
    constexpr long long kPairsPerThread = 2'000'000;
    constexpr std::chrono::seconds kMostOfRow(3);
    Progress progress(context_, "checking");
    exec::Outputs outputs;
    long long done = 0;
    for (CompareRacer &racer : racers_) {
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
  std::vector<std::unique_ptr<Subject>> subjects_; ///< of the tree at hand
  std::vector<CompareRacer> racers_;               ///< likewise
  CompareReport report_;
};

} // namespace

Result<CompareReport> compareSession(Context &context, const CompareOptions &options) {
  return Comparison(context, options).run();
}

} // namespace deft::cli
