#include "tuner/bench/KernelBench.h"

#include "runtime/exec/ParamRanges.h"
#include "runtime/exec/Params.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/plan/VisibleTree.h"

#include <algorithm>
#include <chrono>

namespace deft::bench {

using support::Result;

namespace {

constexpr int kExploreRepeats = 7;
/// Each pass copies the cache to the device again.
constexpr int kMostCountingPasses = 4;
constexpr int kChunks[] = {0, 64, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096};
constexpr int kTiles[] = {16, 32, 64, 128};

/// The config with items limited to `tileQ` rows: a kernel also runs items with fewer rows than its tile.
config::Config withTile(config::Config config, int ratio, int tileQ) {
  for (config::PhaseConfig &phase : config.phases)
    phase.tileQ = std::min(phase.tileQ, std::max(tileQ, (ratio + 15) / 16 * 16));
  return config;
}

} // namespace

std::vector<std::string> valuesWithoutDefault(const spec::Variant &variant) {
  std::vector<std::string> assignments;
  for (const spec::Param &param : variant.params)
    if (!param.defaultValue)
      assignments.push_back(param.name + (param.type == spec::ScalarType::F32 ? "=0.05" : "=4"));
  return assignments;
}

Result<KernelBench> KernelBench::open(const std::shared_ptr<device::Device> &device,
                                      const spec::Variant &variant, const package::KernelSet &kernels) {
  KernelBench bench(device, variant, kernels.config);
  auto executor = exec::CudaExecutor::create(device, variant, kernels);
  if (!executor)
    return executor.error();
  bench.executor_ = std::move(*executor);
  return bench;
}

Result<device::Timing> KernelBench::time(int repeats, bool coldL2) {
  return device::timeOnDevice(device_, [&] { return executor_->enqueue(inputs_); }, {repeats, coldL2});
}

Result<Measured> KernelBench::measure(const tree::KvTree &tree, const config::Config &config,
                                      const KernelBenchOptions &options, int repeats) {
  Measured measured;
  plan::Planner planner;
  plan::Plan plan;
  constexpr int kPlans = 7;
  double planUs[kPlans];
  for (double &us : planUs) {
    const auto start = std::chrono::steady_clock::now();
    if (auto made = planner.make(tree, facts_, config, executor_->blocksAtOnce(), plan); !made)
      return made.error();
    us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  }
  measured.firstPlanUs = planUs[0];
  std::sort(planUs + 1, planUs + kPlans);
  measured.planUs = planUs[1 + kPlans / 2];
  if (auto cleared = inputs_.clearOutputs(plan.queryCount()); !cleared)
    return cleared.error();
  if (auto prepared = executor_->prepare(plan); !prepared)
    return prepared.error();
  const auto cold = time(repeats, /*coldL2=*/true);
  if (!cold)
    return cold.error();
  measured.config = config;
  measured.chunkTokens = config.chunkTokens;
  measured.items = static_cast<int>(plan.items.size());
  measured.partialSlots = plan.partialSlots;
  measured.partition = plan.partition;
  measured.io = plan::io(plan, facts_);
  measured.medianUs = cold->medianUs;
  measured.fastestUs = cold->fastestUs;
  measured.slowestUs = cold->slowestUs;
  if (options.warmToo) {
    const auto warm = time(repeats, /*coldL2=*/false);
    if (!warm)
      return warm.error();
    measured.warmUs = warm->medianUs;
  }
  return measured;
}

Result<reference::CountReport> KernelBench::count(const tree::KvTree &tree, const exec::Inputs &inputs,
                                                  const KernelBenchOptions &options) {
  reference::Counting counting(variant_, tree, inputs, {options.threads, options.mostCheckedPairs});
  const auto run = [&](exec::Inputs &made, exec::Outputs &outputs) -> Result<void> {
    if (auto loaded = inputs_.load(made); !loaded)
      return loaded;
    if (auto enqueued = executor_->enqueue(inputs_); !enqueued)
      return enqueued;
    return inputs_.read(made.queryCount, outputs);
  };
  if (auto ran = reference::runPasses(counting, run, kMostCountingPasses); !ran)
    return ran.error();
  return counting.judge();
}

Result<KernelBenchResult> KernelBench::run(tree::KvTree tree, const KernelBenchOptions &options) {
  auto placement =
      tree::placeInCache(tree, {variant_.cache.pageSize, options.pages, options.seed, /*poolPages=*/0});
  if (!placement)
    return placement.error();
  auto params = exec::bindParams(variant_, valuesWithoutDefault(variant_));
  if (!params)
    return params.error();
  const exec::Inputs inputs =
      exec::makeRandomInputs(variant_, tree, *placement, std::move(*params), options.seed, options.threads);
  if (auto loaded = inputs_.load(inputs); !loaded)
    return loaded.error();

  KernelBenchResult result;
  facts_ = plan::VariantFacts::of(variant_, config::DeviceKind::Gpu, exec::reachOf(variant_, inputs.params));
  const plan::VisibleCounts visible = plan::countVisible(tree, facts_.reach);
  const spec::Tensors &tensors = variant_.tensors;
  result.cacheBytes = static_cast<double>(visible.tokens) * variant_.kvHeads * tensors.cacheBytes();
  result.flops = static_cast<double>(visible.pairs) * variant_.queryHeads * tensors.pairFlops();

  config::Config config = options.config.value_or(config_);
  config.chunkTokens = options.chunkTokens.value_or(config.chunkTokens);
  config.partition = options.partition.value_or(config.partition);
  if (options.tileQ)
    config = withTile(config, facts_.ratio, *options.tileQ);
  if (options.explore) {
    for (int tile : kTiles)
      for (int chunk : kChunks) {
        config::Config candidate = withTile(config, facts_.ratio, tile);
        candidate.chunkTokens = chunk;
        const auto measured = measure(tree, candidate, options, kExploreRepeats);
        if (!measured)
          return measured.error();
        if (!result.best || measured->medianUs < result.best->medianUs)
          result.best = *measured;
      }
    if (result.best) { // measure again, since the best of many may be the luckiest
      const auto again = measure(tree, result.best->config, options, options.repeats);
      if (!again)
        return again.error();
      result.best = *again;
    }
  }
  const auto chosen = measure(tree, config, options, options.repeats);
  if (!chosen)
    return chosen.error();
  result.chosen = *chosen;
  exec::Outputs outputs;
  if (auto read = inputs_.read(inputs.queryCount, outputs); !read)
    return read.error();
  result.check =
      reference::check(variant_, tree, inputs, outputs, {options.threads, options.mostCheckedPairs});
  const auto counted = count(tree, inputs, options);
  if (!counted)
    return counted.error();
  result.check.count = *counted;
  if (auto loaded = inputs_.load(inputs); !loaded) // for timeAgain()
    return loaded.error();
  return result;
}

} // namespace deft::bench
