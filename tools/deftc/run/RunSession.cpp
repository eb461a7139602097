#include "tools/deftc/run/RunSession.h"

#include "runtime/exec/ParamRanges.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/cpu/Processors.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/ProgramInput.h"
#include "tools/deftc/common/Progress.h"
#include "tools/deftc/run/Memory.h"
#include "tools/deftc/run/RunBackend.h"
#include "tools/deftc/run/RunDump.h"
#include "tools/deftc/run/RunInputs.h"
#include "tuner/bench/PlainRead.h"
#include "tuner/replay/ServedCache.h"
#include "tuner/replay/TreeSteps.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace deft::cli {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// What a check takes at most, unless all is asked for; a single query or pass may take longer.
constexpr double kMostCheckSeconds = 30;

double microsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

/// The command's steps in order, and what they find out.
class Session {
public:
  Session(Context &context, const RunOptions &options) : context_(context), options_(options) {}

  Result<RunReport> run() {
    auto program = openProgram(context_, options_.input, options_.variant);
    if (!program)
      return program.error();
    program_.emplace(std::move(*program));
    report_.variant = program_->variant();
    threads_ = options_.threads > 0 ? options_.threads : exec::usableProcessors();
    for (auto step : {&Session::openTrees, &Session::openBackend, &Session::makeInputs, &Session::runSteps,
                      &Session::finish})
      if (auto done = (this->*step)(); !done)
        return done.error();
    return report_;
  }

private:
  Result<void> openTrees() {
    if (auto read = context_.files.reads(options_.tree); !read)
      return read;
    if (auto read = context_.files.readsFolder(options_.recordsFolder); !read)
      return read;
    if (!options_.inputs.empty())
      if (auto read = readsInputs(context_, options_.inputs); !read)
        return read;
    const Underway underway(context_, "making the tree");
    const std::string file = options_.inputs.empty() ? options_.tree : options_.inputs + "/tree.json";
    auto steps = options_.workload.empty() ? replay::TreeSteps::ofFile(file)
                                           : replay::TreeSteps::ofWorkload(options_.workload, options_.seed,
                                                                           options_.recordsFolder);
    if (!steps)
      return steps.error();
    steps_.emplace(std::move(*steps));
    if (options_.steps - 1 > steps_->stepsLeft())
      return Error{ErrorCode::Usage,
                   "`" + steps_->name() + "` has " + std::to_string(steps_->stepsLeft() + 1) +
                       " steps, not " + std::to_string(options_.steps),
                   ""};
    report_.treePath = steps_->name();
    report_.pages = options_.pages;
    report_.seed = options_.seed;
    report_.inputs = options_.inputs;
    return {};
  }

  Result<void> openBackend() {
    const ConfigSource configs{options_.config, options_.untuned};
    const RunSubject subject{*program_, steps_->tree(), configs};
    auto backend = cli::openBackend(context_, subject, options_.backend, threads_);
    if (!backend)
      return backend.error();
    backend_ = std::move(*backend);
    return {};
  }

  Result<void> makeInputs() {
    auto params = options_.inputs.empty()
                      ? openParams(context_, report_.variant, options_.params)
                      : dumpedParams(context_, options_.inputs, report_.variant, options_.params);
    if (!params)
      return params.error();
    reach_ = exec::reachOf(report_.variant, *params);
    backend_->setReach(reach_);
    if (auto fits = checkInputs(steps_->tree().tokens(), steps_->tree().queries().size()); !fits)
      return fits;
    std::optional<Underway> underway;
    if (options_.inputs.empty()) // reading says how far it is
      underway.emplace(context_, "making inputs");
    return options_.steps > 1 ? makeInputsOfSteps(std::move(*params)) : makeInputsOfTree(std::move(*params));
  }

  /// Of so many tokens and queries at least.
  Result<void> checkInputs(std::int64_t tokens, std::size_t queries) const {
    const spec::Variant &variant = report_.variant;
    return checkMemory(counted(static_cast<long long>(tokens), "token", "tokens") +
                           " and the inputs and outputs of " +
                           counted(static_cast<long long>(queries), "query", "queries"),
                       static_cast<double>(tokens) * variant.kvHeads * variant.tensors.cacheBytes() +
                           static_cast<double>(queries) * variant.queryHeads *
                               (variant.tensors.q.rowBytes() + variant.tensors.out.rowBytes()));
  }

  tree::PlacementOptions placementOptions() const {
    tree::PlacementOptions placement;
    placement.pageSize = exec::pageSizeOf(report_.variant);
    placement.seed = options_.seed;
    if (options_.pages == "scattered")
      placement.order = tree::PlacementOrder::Scattered;
    return placement;
  }

  /// One tree: its tokens have their values, random ones or those of files, everything beside them is NaN.
  Result<void> makeInputsOfTree(std::vector<exec::ParamValue> params) {
    tree_.emplace(steps_->tree());
    const auto placement = tree::placeInCache(*tree_, placementOptions());
    if (!placement)
      return placement.error();
    if (options_.inputs.empty()) {
      inputs_ = exec::makeRandomInputs(report_.variant, *tree_, *placement, std::move(params), options_.seed,
                                       threads_);
      return {};
    }
    auto read = readInputs(context_, options_.inputs, report_.variant, *tree_, *placement, std::move(params));
    if (!read)
      return read.error();
    inputs_ = std::move(*read);
    return {};
  }

  /// Several steps share a cache, in which the tree moves about.
  Result<void> makeInputsOfSteps(std::vector<exec::ParamValue> params) {
    auto cache = replay::ServedCache::open(*steps_, options_.steps, placementOptions());
    if (!cache)
      return cache.error();
    cache_.emplace(std::move(*cache));
    const int unit = std::max(exec::pageSizeOf(report_.variant), 1);
    if (auto fits = checkInputs(cache_->pages() * unit, tree().queries().size()); !fits)
      return fits;
    inputs_ = cache_->makeInputs(report_.variant, std::move(params), options_.seed, threads_);
    return {};
  }

  const tree::KvTree &tree() const { return cache_ ? cache_->tree() : *tree_; }

  Result<void> runSteps() {
    Progress progress(context_, "running");
    for (int i = 0; i < options_.steps; ++i) {
      if (i > 0)
        if (auto followed = cache_->next(*steps_, report_.variant, inputs_); !followed)
          return followed;
      if (auto ran = runStep(); !ran)
        return ran;
      progress.at(i + 1, options_.steps);
    }
    return {};
  }

  Result<void> runStep() {
    inputs_.queryCount = static_cast<int>(tree().queries().size());
    const std::string size = counted(inputs_.queryCount, "query", "queries");
    std::optional<Underway> underway(std::in_place, context_, "planning " + size);
    if (auto planned = planStep(); !planned)
      return planned;
    underway.emplace(context_, "running " + size);
    if (auto loaded = backend_->load(inputs_); !loaded)
      return loaded;
    const auto times = backend_->run(plan_, outputs_, options_.repeat);
    if (!times)
      return times.error();
    underway.reset();
    report_.steps.back().runUs = times->medianUs;
    report_.times = *times;
    if (options_.isChecked())
      if (auto checked = checkStep(); !checked)
        return checked;
    return selectStep();
  }

  /// Of an attention that selects: the two other attentions that its spec makes. The first wrong step is
  /// kept.
  Result<void> selectStep() {
    if (!report_.variant.select || !backend_->selects() || (report_.selected && !report_.selected->passed()))
      return {};
    const reference::CheckOptions check = checkOptions();
    auto selected = runSelection(*backend_, report_.variant, tree(), plan_, inputs_, outputs_,
                                 options_.repeat, options_.isChecked() ? &check : nullptr);
    if (!selected)
      return selected.error();
    report_.selected = std::move(*selected);
    return {};
  }

  /// The config for the tree as it is now; another one only where the tree has become one of another class.
  Result<void> chooseConfig() {
    selection_ = &backend_->choose(tree());
    if (auto usable = checkGiven(*selection_); !usable)
      return usable;
    config_ = selection_->config();
    if (options_.partition)
      config_.partition = *options_.partition;
    if (options_.chunk >= 0)
      config_.chunkTokens = options_.chunk;
    return {};
  }

  plan::VariantFacts facts() const {
    const auto kind = backend_->name() == "cpu" ? config::DeviceKind::Cpu : config::DeviceKind::Gpu;
    return plan::VariantFacts::of(report_.variant, kind, reach_);
  }

  /// By advance() where only leaves have grown.
  Result<void> planStep() {
    const plan::VariantFacts facts = this->facts();
    RunReport::Step step;
    const auto start = std::chrono::steady_clock::now();
    step.isAdvanced = !report_.steps.empty() && planner_.advance(tree(), plan_) == plan::Advance::Done;
    if (!step.isAdvanced) {
      if (auto chosen = chooseConfig(); !chosen)
        return chosen;
      if (auto made = planner_.make(tree(), facts, config_, backend_->blocks(), plan_); !made)
        return made;
    }
    step.planUs = microsSince(start);
    if (backend_->name() == "cpu")
      if (auto fits = checkPartials(); !fits)
        return fits;
    report_.steps.push_back(step);
    return {};
  }

  Result<void> checkPartials() const {
    const double rows = static_cast<double>(plan_.partialSlots) * report_.variant.queryHeads;
    return checkMemory("the plan's partial results",
                       rows * (report_.variant.tensors.out.dim + 1) * sizeof(float));
  }

  /// Unless all is asked for, of large trees a sample, and after some time what is left is left out: half a
  /// step's share of that for each call.
  reference::CheckOptions checkOptions() const {
    // The oracle takes some 200 ns for a (row, token) pair: a bound keeps large trees to a few seconds.
    constexpr long long kPairsPerThread = 20'000'000;
    reference::CheckOptions check;
    check.threads = threads_;
    check.mostRowTokens =
        options_.isAllChecked() ? 0 : std::max(kPairsPerThread * threads_ / options_.steps, 1LL);
    check.deadline = deadline();
    return check;
  }

  reference::Deadline deadline() const {
    if (options_.isAllChecked())
      return std::nullopt;
    const std::chrono::duration<double> share(kMostCheckSeconds / 2 / options_.steps);
    const auto now = std::chrono::steady_clock::now();
    return now + std::chrono::duration_cast<std::chrono::steady_clock::duration>(share);
  }

  /// By the oracle, of the step's inputs and of counting ones.
  Result<void> checkStep() {
    Progress progress(context_, "checking");
    reference::CheckOptions check = checkOptions();
    check.progress = [&](long long done, long long of) { progress.at(done, of); };
    auto found = reference::check(report_.variant, tree(), inputs_, outputs_, check);
    check.deadline = deadline();
    auto counted = countStep(check);
    if (!counted)
      return counted.error();
    found.count = std::move(*counted);
    // The worst step is the one to tell of.
    const auto badness = [](const reference::CheckReport &report) {
      return std::max({report.share(), report.lseShare(), report.count->worst,
                       report.count->passed() ? 0 : std::numeric_limits<double>::infinity()});
    };
    if (!report_.check || badness(found) > badness(*report_.check))
      report_.check = found;
    report_.queriesChecked += found.queriesChecked;
    report_.queriesRun += found.queries;
    return {};
  }

  /// Long paths take several passes, each another run: of many steps, or of a tree that takes many, not all
  /// are made, and each step makes others.
  Result<reference::CountReport> countStep(const reference::CheckOptions &check) {
    constexpr int kMostPasses = 16;
    reference::Counting counting(report_.variant, tree(), inputs_, {threads_, check.mostRowTokens});
    const auto run = [&](exec::Inputs &inputs, exec::Outputs &outputs) -> Result<void> {
      if (auto loaded = backend_->load(inputs); !loaded)
        return loaded;
      return backend_->runOnce(plan_, outputs);
    };
    const int most = options_.isAllChecked() ? 0 : std::max(kMostPasses / options_.steps, 1);
    if (auto ran = reference::runPasses(counting, run, most, static_cast<int>(report_.steps.size()) - 1,
                                        check.deadline);
        !ran)
      return ran.error();
    auto report = counting.judge();
    if (auto loaded = backend_->load(inputs_); !loaded)
      return loaded.error();
    return report;
  }

  /// What is said of the last step.
  Result<void> finish() {
    report_.tree = tree::summarize(tree());
    report_.visible = plan::countVisible(tree(), reach_);
    report_.readTokens = plan_.readTokens;
    report_.config = config_;
    report_.selection = *selection_;
    report_.isAsked = options_.partition || options_.chunk >= 0;
    report_.partition = plan_.partition;
    report_.plan = plan::summarize(plan_, facts());
    report_.backend = backend_->name();
    report_.device = backend_->device();
    if (const device::Ceilings *ceilings = backend_->ceilings()) {
      const auto floor = [&](double flops) {
        return device::floorUs(*ceilings, report_.variant.tensors.q.dtype, report_.cacheBytes(), flops);
      };
      report_.ceilingModel = ceilings->model;
      report_.floorUs = floor(report_.flops());
      report_.isBoundByProducts = *report_.floorUs > floor(0);
    }
    if (report_.backend == "cpu") {
      const Underway underway(context_, "measuring a plain read");
      report_.readBandwidth =
          bench::plainReadBandwidth(report_.variant, bench::tokensRead(plan_), inputs_, threads_);
      const double productRate = config_.cost.blockGflops * 1e9 * threads_;
      report_.isBoundByProducts = report_.readBandwidth > 0 &&
                                  report_.flops() / productRate > report_.readBytes() / report_.readBandwidth;
    }
    if (options_.dump.empty())
      return {};
    if (auto dumped = dumpRun(context_, options_.dump, report_.variant, tree(), inputs_, outputs_); !dumped)
      return dumped;
    if (report_.selected)
      return dumpSelection(options_.dump, report_.variant, *report_.selected);
    return {};
  }

  Context &context_;
  const RunOptions &options_;
  std::optional<program::Program> program_;
  std::optional<replay::TreeSteps> steps_;
  std::unique_ptr<RunBackend> backend_;
  const config_cache::Selection *selection_ = nullptr; ///< of the last plan that was made anew
  config::Config config_;                              ///< its config, as --partition and --chunk change it
  int threads_ = 1;
  std::optional<tree::KvTree> tree_;         ///< of a single step
  std::optional<replay::ServedCache> cache_; ///< of several
  exec::Inputs inputs_;
  plan::Reach reach_; ///< of the mask, with these parameters
  exec::Outputs outputs_;
  plan::Planner planner_;
  plan::Plan plan_;
  RunReport report_;
};

} // namespace

Result<RunReport> runSession(Context &context, const RunOptions &options) {
  return Session(context, options).run();
}

} // namespace deft::cli
