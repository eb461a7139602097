#include "compiler/config/DefaultConfig.h"
#include "runtime/device/Ceilings.h"
#include "runtime/device/Timer.h"
#include "runtime/exec/Params.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/cpu/CpuExecutor.h"
#include "runtime/exec/cuda/CudaExecutor.h"
#include "runtime/tree/CachePlacement.h"
#include "runtime/tree/TreeFile.h"
#include "tools/deftc/Commands.h"
#include "tools/deftc/RunInput.h"
#include "tools/deftc/RunReport.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <ostream>
#include <thread>

namespace deft::cli {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

struct Options {
  std::string input, variant, tree, backend, pages = "in-order", json;
  std::vector<std::string> params;
  std::uint64_t seed = 0;
  int chunk = -1;  ///< -1: the config's
  int repeat = 0;  ///< 0: the backend's default
  int threads = 0; ///< 0: all
  bool check = false;
  bool checkAll = false;
};

double microsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

/// One run of the command: its steps in order, and what they find out.
class Run {
public:
  Run(Context &context, const Options &options) : context_(context), options_(options) {}

  Result<RunReport> run() {
    auto input = openProgram(context_, options_.input, options_.variant);
    if (!input)
      return input.error();
    input_.emplace(std::move(*input));
    report_.variant = input_->variant();
    threads_ = options_.threads > 0 ? options_.threads : std::max(1u, std::thread::hardware_concurrency());
    if (auto prepared = prepareInputs(); !prepared)
      return prepared.error();
    if (auto opened = openBackend(); !opened)
      return opened.error();
    if (auto ran = device_ ? runCuda() : runCpu(); !ran)
      return ran.error();
    if (options_.check || options_.checkAll)
      checkOutputs();
    return report_;
  }

private:
  Result<void> prepareInputs() {
    auto tree = tree::readTreeFile(options_.tree);
    if (!tree)
      return tree.error();
    tree_ = std::move(*tree);
    auto params = exec::bindParams(report_.variant, options_.params);
    if (!params)
      return params.error();
    tree::PlacementOptions placementOptions;
    placementOptions.pageSize = exec::pageSizeOf(report_.variant);
    placementOptions.seed = options_.seed;
    if (options_.pages == "scattered")
      placementOptions.order = tree::PlacementOrder::Scattered;
    auto placement = tree::placeInCache(tree_, placementOptions);
    if (!placement)
      return placement.error();
    inputs_ = exec::makeRandomInputs(report_.variant, tree_, *placement, std::move(*params), options_.seed);
    report_.treePath = options_.tree;
    report_.tree = tree::summarize(tree_);
    report_.pages = options_.pages;
    report_.seed = options_.seed;
    return {};
  }

  /// A GPU where one was asked for, or where nothing was and there is one.
  Result<void> openBackend() {
    report_.backend = "cpu";
    if (options_.backend == "cpu")
      return {};
    const auto driver = device::Driver::load();
    const bool mustBeCuda = options_.backend == "cuda";
    if (!driver)
      return mustBeCuda ? Result<void>(driver.error()) : Result<void>();
    auto device = device::Device::open(*driver);
    if (!device)
      return mustBeCuda ? Result<void>(device.error()) : Result<void>();
    device_ = *device;
    report_.backend = "cuda";
    return {};
  }

  Result<void> makePlan(config::Config config, int blocks) {
    if (options_.chunk >= 0)
      config.chunkTokens = options_.chunk;
    if (config.partition != spec::Partition::Union && config.partition != spec::Partition::Auto) {
      context_.err << "note: the config's partition cannot be planned yet, `union` is used\n";
      config.partition = spec::Partition::Union;
    }
    const plan::VariantFacts facts = plan::VariantFacts::of(report_.variant);
    const auto start = std::chrono::steady_clock::now();
    auto plan = plan::makePlan(tree_, facts, config, blocks);
    report_.planUs = microsSince(start);
    if (!plan)
      return plan.error();
    plan_ = std::move(*plan);
    report_.config = config;
    report_.plan = plan::summarize(plan_, facts);
    return {};
  }

  Result<void> runCuda() {
    const device::DeviceFacts &facts = device_->facts();
    std::string warning;
    auto kernels = input_->cudaKernels(facts.major, facts.minor, warning);
    if (!warning.empty())
      context_.err << "warning: " << warning << '\n';
    if (!kernels)
      return kernels.error();
    auto created = exec::CudaExecutor::create(device_, report_.variant, *kernels);
    if (!created)
      return created.error();
    exec::CudaExecutor &executor = **created;
    if (auto planned = makePlan(kernels->config, executor.blocksAtOnce()); !planned)
      return planned;
    if (auto loaded = executor.load(inputs_); !loaded)
      return loaded;
    if (auto prepared = executor.prepare(plan_); !prepared)
      return prepared;
    if (auto enqueued = executor.enqueue(); !enqueued)
      return enqueued;
    if (auto read = executor.read(outputs_); !read)
      return read;

    report_.device = facts.name;
    device::TimerOptions timerOptions;
    if (options_.repeat > 0)
      timerOptions.repeats = options_.repeat;
    const auto timing = device::timeOnDevice(device_, [&] { return executor.enqueue(); }, timerOptions);
    if (!timing)
      return timing.error();
    report_.repeats = timerOptions.repeats;
    report_.medianUs = timing->medianUs;
    report_.fastestUs = timing->fastestUs;
    report_.slowestUs = timing->slowestUs;
    if (const device::Ceilings *ceilings = device::ceilingsOf(facts.name)) {
      report_.ceilingModel = ceilings->model;
      report_.floorUs =
          device::floorUs(*ceilings, report_.variant.dtype, report_.cacheBytes(), report_.flops());
    }
    return {};
  }

  Result<void> runCpu() {
    const auto kernel = input_->cpuKernel();
    if (!kernel)
      return kernel.error();
    const auto config = config::defaultConfig(report_.variant);
    if (!config)
      return config.error();
    if (auto planned = makePlan(*config, threads_); !planned)
      return planned;
    std::vector<double> times;
    report_.repeats = options_.repeat > 0 ? options_.repeat : 5;
    for (int i = -1; i < report_.repeats; ++i) { // the first one warms up and is not counted
      const auto start = std::chrono::steady_clock::now();
      if (auto ran = exec::runCpu(*kernel, report_.variant, plan_, inputs_, outputs_, threads_); !ran)
        return ran;
      if (i >= 0)
        times.push_back(microsSince(start));
    }
    std::sort(times.begin(), times.end());
    report_.medianUs = times[times.size() / 2];
    report_.fastestUs = times.front();
    report_.slowestUs = times.back();
    report_.device = std::to_string(threads_) + (threads_ == 1 ? " thread" : " threads");
    return {};
  }

  void checkOutputs() {
    // The oracle takes some 200 ns for a (row, token) pair: a bound keeps large trees to a few seconds.
    constexpr long long kPairsPerThread = 20'000'000;
    reference::CheckOptions options;
    options.threads = threads_;
    options.mostRowTokens = options_.checkAll ? 0 : kPairsPerThread * threads_;
    report_.check = reference::check(report_.variant, tree_, inputs_, outputs_, options);
  }

  Context &context_;
  const Options &options_;
  std::optional<jit::Program> input_;
  int threads_ = 1;
  tree::KvTree tree_;
  exec::Inputs inputs_;
  exec::Outputs outputs_;
  plan::Plan plan_;
  std::shared_ptr<device::Device> device_;
  RunReport report_;
};

int runCommand(Context &context, const Options &options) {
  const auto report = Run(context, options).run();
  if (!report)
    return reportError(context, report.error());
  printReport(*report, context.out);
  if (!options.json.empty())
    if (const int code = writeOutput(context, options.json, toJson(*report).dump(2) + "\n"); code != kExitOk)
      return code;
  if (report->check && !report->check->passed())
    return reportError(context, {ErrorCode::Diagnostics,
                                 "the check failed: " + reference::explainFailure(*report->check), ""});
  return kExitOk;
}

} // namespace

void addRunCommand(CLI::App &app, Context &context) {
  CLI::App *command = app.add_subcommand("run", "Run a spec or a package on a tree, with random inputs");
  auto options = std::make_shared<Options>();
  command
      ->add_option("SPEC", options->input,
                   "A spec, the name of a shipped one, or a package; SPEC#NAME chooses")
      ->required();
  command->add_option("--variant", options->variant, "The attention, when the file defines several");
  command->add_option("--tree", options->tree, "A tree file (JSON)")->required();
  command->add_option("--backend", options->backend, "Where it runs; by default a GPU if there is one")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command
      ->add_option("--param", options->params,
                   "NAME=VALUE, for an array the same value for every head, or NAME=FILE.npy")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--pages", options->pages, "How the tree lies in the cache")
      ->check(CLI::IsMember({"in-order", "scattered"}));
  command->add_option("--seed", options->seed, "Of the inputs and of the scattering");
  command->add_option("--chunk", options->chunk, "Most tokens of an item; 0 fills the machine")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--repeat", options->repeat, "Timed runs")->check(CLI::PositiveNumber);
  command->add_option("--threads", options->threads, "Of the CPU; all by default")
      ->check(CLI::PositiveNumber);
  command->add_flag(
      "--check", options->check,
      "Compare with a float64 evaluation; exit 1 when wrong. Of large trees some queries are compared");
  command->add_flag("--check-all", options->checkAll, "Compare all queries, however long it takes");
  command->add_option("--json", options->json, "Write the report to this file, - for the output");
  command->footer("Example:\n  deftc run llama3_8b --tree tree.json --check\n"
                  "where tree.json holds a prompt with two branches:\n"
                  "  {\"format\": \"deftc-tree\", \"version\": 1,\n"
                  "   \"nodes\": [{\"parent\": -1, \"tokens\": 200}, {\"parent\": 0, \"tokens\": 7},\n"
                  "             {\"parent\": 0, \"tokens\": 9}],\n"
                  "   \"queries\": [{\"node\": 1}, {\"node\": 2}]}");
  context.onRun(command, [&context, options] { return runCommand(context, *options); });
}

} // namespace deft::cli
