#include "tools/deftc/run/RunSession.h"

#include "runtime/exec/ParamRanges.h"
#include "runtime/exec/cpu/Processors.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/Numbers.h"
#include "tools/deftc/common/ProgramInput.h"
#include "tools/deftc/common/Progress.h"
#include "tools/deftc/run/Memory.h"
#include "tools/deftc/run/RunBackend.h"
#include "tools/deftc/run/RunDump.h"
#include "tools/deftc/run/RunInputs.h"
#include "tools/deftc/run/StepChecks.h"
#include "tools/deftc/run/StepInputs.h"
#include "tuner/bench/PlainRead.h"

#include <chrono>

namespace deft::cli {

using support::Result;

namespace {

double microsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

/// The steps, one after the other, on what has been opened for them, and what is found out of them.
class ActiveRun {
public:
  ActiveRun(Context &context, const RunOptions &options, const spec::Variant &variant, RunBackend &backend,
            StepInputs &inputs, plan::Reach reach, int threads)
      : context_(context), options_(options), variant_(variant), backend_(backend), inputs_(inputs),
        reach_(std::move(reach)), threads_(threads), checks_(context, options, threads),
        planner_({.isInvariant = options.isInvariant}) {}

  Result<RunReport> run() {
    if (auto ran = runSteps(); !ran)
      return ran.error();
    finish();
    if (auto dumped = dump(); !dumped)
      return dumped.error();
    return std::move(report_);
  }

private:
  const tree::KvTree &tree() const { return inputs_.tree(); }

  Result<void> runSteps() {
    Progress progress(context_, "running");
    for (int i = 0; i < options_.steps; ++i) {
      if (i > 0)
        if (auto followed = inputs_.next(variant_); !followed)
          return followed;
      if (auto ran = runStep(); !ran)
        return ran;
      progress.at(i + 1, options_.steps);
    }
    return {};
  }

  Result<void> runStep() {
    const std::string size = counted(inputs_.inputs().queryCount, "query", "queries");
    std::optional<Underway> underway(std::in_place, context_, "planning " + size);
    if (auto planned = planStep(); !planned)
      return planned;
    underway.emplace(context_, "running " + size);
    if (auto loaded = backend_.load(inputs_.inputs()); !loaded)
      return loaded;
    const auto times = backend_.run(plan_, outputs_, options_.repeat);
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
    if (!variant_.select || !backend_.selects() || (report_.selected && !report_.selected->passed()))
      return {};
    const reference::CheckOptions check = checks_.options();
    auto selected = runSelection(backend_, variant_, tree(), plan_, inputs_.inputs(), outputs_,
                                 options_.budget > 0 ? options_.budget : variant_.select->defaultBudget(),
                                 options_.repeat, options_.isChecked() ? &check : nullptr);
    if (!selected)
      return selected.error();
    report_.selected = std::move(*selected);
    return {};
  }

  /// The config for the tree as it is now; another one only where the tree has become one of another class.
  Result<void> chooseConfig() {
    const config_cache::Ruling &ruling = backend_.choose(tree());
    if (!options_.mayChangeConfig)
      if (auto usable = checkGiven(ruling); !usable)
        return usable;
    report_.ruling = ruling;
    report_.config = ruling.config();
    if (options_.partition)
      report_.config.partition = *options_.partition;
    if (options_.chunk >= 0)
      report_.config.chunkTokens = options_.chunk;
    return {};
  }

  bool isOnCpu() const { return backend_.name() == "cpu"; }

  plan::VariantFacts facts() const {
    return plan::VariantFacts::of(variant_, isOnCpu() ? config::DeviceKind::Cpu : config::DeviceKind::Gpu,
                                  reach_);
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
      if (auto made = planner_.make(tree(), facts, report_.config, backend_.blocks(), plan_); !made)
        return made;
    }
    step.planUs = microsSince(start);
    if (isOnCpu())
      if (auto fits = checkPartials(); !fits)
        return fits;
    report_.steps.push_back(step);
    return {};
  }

  Result<void> checkPartials() const {
    const double rows = static_cast<double>(plan_.partialSlots) * variant_.queryHeads;
    return checkMemory("the plan's partial results", rows * (variant_.tensors.out.dim + 1) * sizeof(float));
  }

  /// The worst step is the one to tell of.
  Result<void> checkStep() {
    const StepRun step{backend_, variant_, tree(), plan_, inputs_.inputs(), outputs_};
    auto found = checks_.check(step, static_cast<int>(report_.steps.size()) - 1);
    if (!found)
      return found.error();
    report_.queriesChecked += found->queriesChecked;
    report_.queriesRun += found->queries;
    if (!report_.check || badness(*found) > badness(*report_.check))
      report_.check = std::move(*found);
    return {};
  }

  /// What is said of the last step.
  void finish() {
    report_.variant = variant_;
    report_.pages = options_.pages;
    report_.seed = options_.seed;
    report_.inputs = options_.inputs;
    report_.tree = tree::summarize(tree());
    report_.visible = plan::countVisible(tree(), reach_);
    report_.readTokens = plan_.readTokens;
    report_.isAsked = options_.partition || options_.chunk >= 0;
    report_.partition = plan_.partition;
    report_.plan = plan::summarize(plan_, facts());
    report_.blocks = backend_.blocks();
    report_.kernelPrices = backend_.kernelPrices();
    report_.backend = backend_.name();
    report_.device = backend_.device();
    if (const device::Ceilings *ceilings = backend_.ceilings())
      tellFloor(*ceilings);
    if (isOnCpu())
      tellPlainRead();
  }

  void tellFloor(const device::Ceilings &ceilings) {
    const auto floor = [&](double flops) {
      return device::floorUs(ceilings, variant_.tensors.q.dtype, report_.cacheBytes(), flops);
    };
    report_.ceilingModel = ceilings.model;
    report_.floorUs = floor(report_.flops());
    report_.isBoundByProducts = *report_.floorUs > floor(0);
  }

  void tellPlainRead() {
    const Underway underway(context_, "measuring a plain read");
    report_.readBandwidth =
        bench::plainReadBandwidth(variant_, bench::tokensRead(plan_), inputs_.inputs(), threads_);
    const double productRate = report_.config.cost.blockGflops * 1e9 * threads_;
    report_.isBoundByProducts = report_.readBandwidth > 0 &&
                                report_.flops() / productRate > report_.readBytes() / report_.readBandwidth;
  }

  Result<void> dump() {
    if (options_.dump.empty())
      return {};
    if (auto dumped = dumpRun(context_, options_.dump, variant_, tree(), inputs_.inputs(), outputs_); !dumped)
      return dumped;
    return report_.selected ? dumpSelection(options_.dump, variant_, *report_.selected) : Result<void>();
  }

  Context &context_;
  const RunOptions &options_;
  const spec::Variant &variant_;
  RunBackend &backend_;
  StepInputs &inputs_;
  plan::Reach reach_; ///< of the mask, with these parameters
  int threads_;
  StepChecks checks_;
  exec::Outputs outputs_;
  plan::Planner planner_;
  plan::Plan plan_;
  RunReport report_;
};

/// The tokens of a list, as asked for, else as the spec says first; 0 where nothing is selected.
Result<int> budgetOf(const RunOptions &options, const spec::Variant &variant) {
  if (options.budget == 0)
    return variant.select ? variant.select->defaultBudget() : 0;
  if (auto checked = exec::checkBudget(variant, options.budget); !checked)
    return checked.error();
  return options.budget;
}

int threadsOf(const RunOptions &options) {
  return options.threads > 0 ? options.threads : exec::usableProcessors();
}

Result<RunReport> runOpened(Context &context, const RunOptions &options, const spec::Variant &variant,
                            RunBackend &backend, Result<StepInputs> inputs, const plan::Reach &reach,
                            const std::string &name) {
  if (!inputs)
    return inputs.error();
  auto report = ActiveRun(context, options, variant, backend, *inputs, reach, threadsOf(options)).run();
  if (report)
    report->treePath = name;
  return report;
}

} // namespace

Result<RunReport> runSession(Context &context, const RunOptions &options) {
  auto program = openProgram(context, options.input, options.variant);
  if (!program)
    return program.error();
  const spec::Variant &variant = program->variant();
  const int threads = threadsOf(options);
  const auto budget = budgetOf(options, variant);
  if (!budget)
    return budget.error();
  auto steps = openTrees(context, options);
  if (!steps)
    return steps.error();
  const std::string treePath = steps->name();

  const ConfigSource configs{options.config, options.untuned};
  const auto backend =
      openBackend(context, {*program, steps->tree(), configs, *budget}, options.backend, threads);
  if (!backend)
    return backend.error();
  auto params = options.inputs.empty() ? openParams(context, variant, options.params)
                                       : dumpedParams(context, options.inputs, variant, options.params);
  if (!params)
    return params.error();
  const plan::Reach reach = exec::reachOf(variant, *params);
  (*backend)->setReach(reach);
  return runOpened(
      context, options, variant, **backend,
      StepInputs::open(context, options, variant, std::move(*steps), std::move(*params), threads), reach,
      treePath);
}

Result<RunReport> runGiven(Context &context, const RunOptions &options, const program::Program &program,
                           GivenStep step) {
  const spec::Variant &variant = program.variant();
  const int threads = threadsOf(options);
  const auto budget = budgetOf(options, variant);
  if (!budget)
    return budget.error();
  ConfigSource configs{options.config, options.untuned};
  configs.fixed = std::move(step.config);
  configs.fixedName = step.name;
  const auto backend = openBackend(context, {program, step.tree, configs, *budget}, options.backend, threads);
  if (!backend)
    return backend.error();
  const plan::Reach reach = exec::reachOf(variant, step.params);
  (*backend)->setReach(reach);
  auto steps = replay::TreeSteps::ofTree(step.name, std::move(step.tree));
  return runOpened(context, options, variant, **backend,
                   StepInputs::ofPlaced(context, options, variant, std::move(steps), step.placement,
                                        std::move(step.params), threads),
                   reach, step.name);
}

} // namespace deft::cli
