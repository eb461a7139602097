/// What a decode step costs the host where a GPU computes: finding the tree's class, making or advancing the
/// plan, writing it where the copy begins, and, where there is a GPU, enqueuing the copy and the runs.
///
/// Trees of 1,000 nodes and 1,000 queries, and of 64, that begin and end anywhere in pages of 16 tokens. The
/// goals at 1,000: writing and enqueuing the copy 10 us beside the planning, advance() with both 15 us, plan
/// and both 60 us. The cold ones find nothing in the caches, as where a server did other things since the
/// step before. On a GPU the kernels are empty ones, so that the stream is never what is waited for. What was
/// written is compared with the plan before anything is timed.
///
/// Where a core runs two threads and the other one belongs to somebody else, all of this takes up to 1.7
/// times as long while that one is busy. `alone_us` is the median of those steps on a GPU that it left alone,
/// as far as additions beside each one tell, and `alone` their share.
/// --benchmark_out=FILE writes JSON.

#include "runtime/config_cache/TreeClassifier.h"
#include "runtime/exec/cuda/CudaPlan.h"
#include "runtime/plan/Planner.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/bench/SecondsSince.h"
#include "tests/bench/StepTimer.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace deft {
namespace {

constexpr int kBlocks = 132;

spec::Variant variant() {
  spec::Variant variant;
  variant.name = "bench";
  variant.queryHeads = 32;
  variant.kvHeads = 8;
  variant.tensors = spec::Tensors::alike(128);
  variant.cache.pageSize = 16;
  return variant;
}

config::Config gpuConfig() {
  config::Config config;
  config.phases = {{.name = "tiles", .family = config::Family::Sm90, .tileQ = 128, .stages = 4, .warps = 12}};
  return config;
}

/// A step of a server and the plan of it.
struct Step {
  explicit Step(tree::KvTree of, config::Order order = config::Order::FromRoot) : tree(std::move(of)) {
    config.order = order;
    remake();
  }

  void remake() {
    const auto facts = plan::VariantFacts::of(variant());
    benchmark::DoNotOptimize(follower.follow(config_cache::featuresOf(planner.read(tree, facts))));
    if (!planner.makeOfRead(tree, facts, config, kBlocks, plan))
      std::abort();
  }
  void grow() {
    int last = -1; // a leaf's queries stand together
    for (const tree::Query &query : tree.queries())
      if (query.node != std::exchange(last, query.node))
        (void)tree.append(query.node, 1);
  }

  tree::KvTree tree;
  config::Config config = gpuConfig();
  config_cache::ClassFollower follower;
  plan::Planner planner;
  plan::Plan plan;
};

using MakeTree = tree::KvTree (*)(int);

/// One that grows, and begins again when its plan can follow no further.
class GrowingStep {
public:
  GrowingStep(MakeTree make, int size, config::Order order)
      : make_(make), size_(size), order_(order), step_(make(size), order) {}

  void grow() {
    if (++steps_ == plan::Planner::kMostGrowth) {
      step_ = Step(make_(size_), order_);
      steps_ = 1;
    }
    step_.grow();
  }
  Step *operator->() { return &step_; }

private:
  MakeTree make_;
  int size_;
  config::Order order_;
  Step step_;
  int steps_ = 0;
};

/// Leaves below one prompt, each with a query.
template <class Tokens> tree::KvTree fan(int size, Tokens ofNextLeaf) {
  tree::KvTree tree;
  const int root = tree.addNode(-1, 4000).value();
  for (int i = 1; i < size; ++i)
    (void)tree.addQuery(tree.addNode(root, ofNextLeaf()).value()).value();
  (void)tree::placeInCache(tree, {});
  return tree;
}

tree::KvTree fewShot(int size) {
  return fan(size, [] { return 205; });
}

/// fewShot(), but no leaf is as long as its neighbours, as sampled answers are not.
tree::KvTree uneven(int size) {
  std::minstd_rand random(1);
  return fan(size, [&] { return 185 + static_cast<int>(random() % 40); });
}

/// A full binary tree, two queries on each leaf.
tree::KvTree binary(int size) {
  tree::KvTree tree;
  for (int i = 0; i < size; ++i)
    (void)tree.addNode(i == 0 ? -1 : (i - 1) / 2, 70).value();
  for (int i = size / 2; i < size; ++i)
    for (int k = 0; k < 2; ++k)
      (void)tree.addQuery(i).value();
  (void)tree::placeInCache(tree, {});
  return tree;
}

/// Where copies begin, in turn: page-locked on a GPU machine, plain memory is as fast to write.
struct Target {
  explicit Target(const plan::Plan &plan) {
    room.growFor(plan);
    sections = exec::PlanSections::of(room);
    memory = std::make_shared<std::vector<std::byte>>(sections.end);
    filled = exec::FilledCounts::all(room);
  }
  /// The next plan is to have its runs where it is copied from. The copy of the one before has been made, as
  /// exec::CudaPlan would find.
  void lend(plan::RunList &runs) {
    auto *const first = reinterpret_cast<abi::Run *>(memory->data() + sections.runs);
    runs.lend({memory, {first, static_cast<std::size_t>(room.runs)}});
  }
  std::size_t write(const plan::Plan &plan) {
    return exec::writeSections(plan, room, sections, memory->data(), filled);
  }
  exec::PlanRoom room;
  exec::PlanSections sections;
  exec::FilledCounts filled;
  std::shared_ptr<std::vector<std::byte>> memory;
};

void write(benchmark::State &state, MakeTree make) {
  const Step step(make(static_cast<int>(state.range(0))));
  Target target(step.plan);
  const std::size_t bytes = target.write(step.plan);
  if (std::memcmp(target.memory->data() + target.sections.runs, step.plan.runs.data(),
                  step.plan.runs.size() * sizeof(abi::Run)) != 0)
    return state.SkipWithError("the runs are not those of the plan");
  for (auto _ : state)
    benchmark::DoNotOptimize(target.write(step.plan));
  state.counters["bytes"] = static_cast<double>(bytes);
  state.counters["items"] = static_cast<double>(step.plan.items.size());
}

void planAndWriteIn(config::Order order, benchmark::State &state, MakeTree make) {
  Step step(make(static_cast<int>(state.range(0))), order);
  Target target(step.plan);
  for (auto _ : state) {
    target.lend(step.plan.runs);
    step.remake();
    benchmark::DoNotOptimize(target.write(step.plan));
  }
}

void planAndWrite(benchmark::State &state, MakeTree make) {
  planAndWriteIn(config::Order::FromRoot, state, make);
}

void planMixedAndWrite(benchmark::State &state, MakeTree make) {
  planAndWriteIn(config::Order::Mixed, state, make);
}

/// Walks through more than the caches hold.
void emptyCaches() {
  static std::vector<std::size_t> memory(std::size_t{256} << 17); // 256 MiB
  constexpr std::size_t kLine = 64 / sizeof(std::size_t);
  for (std::size_t i = 0; i < memory.size(); i += kLine)
    ++memory[i];
  benchmark::ClobberMemory();
}

void planColdAndWriteIn(config::Order order, benchmark::State &state, MakeTree make) {
  Step step(make(static_cast<int>(state.range(0))), order);
  Target target(step.plan);
  for (auto _ : state) {
    emptyCaches();
    const auto begin = std::chrono::steady_clock::now();
    target.lend(step.plan.runs);
    step.remake();
    benchmark::DoNotOptimize(target.write(step.plan));
    state.SetIterationTime(secondsSince(begin));
  }
}

void planColdAndWrite(benchmark::State &state, MakeTree make) {
  planColdAndWriteIn(config::Order::FromRoot, state, make);
}

void planMixedColdAndWrite(benchmark::State &state, MakeTree make) {
  planColdAndWriteIn(config::Order::Mixed, state, make);
}

void advanceAndWriteIn(config::Order order, benchmark::State &state, MakeTree make) {
  GrowingStep step(make, static_cast<int>(state.range(0)), order);
  Target target(step->plan);
  for (auto _ : state) {
    step.grow();
    const auto begin = std::chrono::steady_clock::now();
    target.lend(step->plan.runs);
    if (step->planner.advance(step->tree, step->plan) != plan::Advance::Done)
      return state.SkipWithError("the plan could not be advanced");
    benchmark::DoNotOptimize(target.write(step->plan));
    state.SetIterationTime(secondsSince(begin));
  }
}

void advanceAndWrite(benchmark::State &state, MakeTree make) {
  advanceAndWriteIn(config::Order::FromRoot, state, make);
}

void advanceMixedAndWrite(benchmark::State &state, MakeTree make) {
  advanceAndWriteIn(config::Order::Mixed, state, make);
}

// --- on a GPU ------------------------------------------------------------------------------------

/// Entries that take what the kernels take and do nothing.
const char *const kEmptyPtx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry deft_bench_tiles(.param .align 64 .b8 args[960], .param .align 8 .b8 params[8]) { ret; }
.visible .entry deft_bench_merge(.param .align 8 .b8 args[96]) { ret; }
)";
static_assert(sizeof(abi::AttendArgs) == 960 && sizeof(abi::MergeArgs) == 96);

struct Gpu {
  std::shared_ptr<device::Device> device;
  std::shared_ptr<const exec::CudaKernels> kernels;
  std::unique_ptr<const exec::CudaParams> params;
};

support::Result<Gpu> openGpu() {
  const auto driver = device::Driver::load();
  if (!driver)
    return driver.error();
  Gpu gpu;
  auto device = device::Device::open(*driver);
  if (!device)
    return device.error();
  gpu.device = std::move(*device);
  package::KernelSet set;
  set.config = gpuConfig();
  set.attend = {{.entry = "deft_bench_tiles", .cubin = kEmptyPtx, .threads = 384, .resources = {}}};
  set.merge = {.entry = "deft_bench_merge", .cubin = kEmptyPtx, .threads = 128, .resources = {}};
  auto kernels = exec::CudaKernels::load(gpu.device, variant(), set);
  if (!kernels)
    return kernels.error();
  gpu.kernels = std::move(*kernels);
  auto params = exec::CudaParams::upload(gpu.device, variant(), {});
  if (!params)
    return params.error();
  gpu.params = std::move(*params);
  return gpu;
}

/// A plan on the device, uploaded.
struct OnDevice {
  static support::Result<OnDevice> of(const plan::Plan &made) {
    auto gpu = openGpu();
    if (!gpu)
      return gpu.error();
    auto plan = exec::CudaPlan::create(gpu->kernels, {});
    if (!plan)
      return plan.error();
    OnDevice on{std::move(*gpu), std::move(*plan)};
    if (auto taken = on.take(made); !taken)
      return taken.error();
    return on;
  }
  support::Result<void> take(const plan::Plan &made) {
    auto written = plan->write(made);
    return written ? plan->upload(gpu.device->stream()) : written;
  }
  Gpu gpu;
  std::unique_ptr<exec::CudaPlan> plan;
};

/// Writing and enqueuing the copy; the stream is empty at the start of each.
void writeAndUpload(benchmark::State &state, MakeTree make) {
  const Step step(make(static_cast<int>(state.range(0))));
  auto on = OnDevice::of(step.plan);
  if (!on)
    return state.SkipWithError(("no GPU: " + on.error().message).c_str());
  StepTimer timer(state);
  for (auto _ : state) {
    (void)on->gpu.device->synchronize("an upload");
    timer.begin();
    if (!on->take(step.plan))
      return state.SkipWithError("an upload failed");
    timer.end();
  }
}

/// All that a step asks of the host: planning, writing and enqueuing the copy; the stream is empty at the
/// start of each.
void planAndUploadIn(config::Order order, benchmark::State &state, MakeTree make) {
  Step step(make(static_cast<int>(state.range(0))), order);
  auto on = OnDevice::of(step.plan);
  if (!on)
    return state.SkipWithError(("no GPU: " + on.error().message).c_str());
  StepTimer timer(state);
  for (auto _ : state) {
    (void)on->gpu.device->synchronize("an upload");
    timer.begin();
    on->plan->lendRoom(step.plan.runs);
    step.remake();
    if (!on->take(step.plan))
      return state.SkipWithError("an upload failed");
    timer.end();
  }
}

void planAndUpload(benchmark::State &state, MakeTree make) {
  planAndUploadIn(config::Order::FromRoot, state, make);
}

void planMixedAndUpload(benchmark::State &state, MakeTree make) {
  planAndUploadIn(config::Order::Mixed, state, make);
}

/// The plan grows by a token a leaf, and what changed is uploaded.
void advanceAndUploadIn(config::Order order, benchmark::State &state, MakeTree make) {
  GrowingStep step(make, static_cast<int>(state.range(0)), order);
  auto on = OnDevice::of(step->plan);
  if (!on)
    return state.SkipWithError(("no GPU: " + on.error().message).c_str());
  StepTimer timer(state);
  for (auto _ : state) {
    step.grow();
    (void)on->gpu.device->synchronize("an upload");
    timer.begin();
    on->plan->lendRoom(step->plan.runs);
    if (step->planner.advance(step->tree, step->plan) != plan::Advance::Done || !on->take(step->plan))
      return state.SkipWithError("the plan could not be advanced or uploaded");
    timer.end();
  }
}

void advanceAndUpload(benchmark::State &state, MakeTree make) {
  advanceAndUploadIn(config::Order::FromRoot, state, make);
}

void advanceMixedAndUpload(benchmark::State &state, MakeTree make) {
  advanceAndUploadIn(config::Order::Mixed, state, make);
}

/// One layer's run: two launches.
void run(benchmark::State &state, MakeTree make) {
  const Step step(make(static_cast<int>(state.range(0))));
  auto on = OnDevice::of(step.plan);
  if (!on)
    return state.SkipWithError(("no GPU: " + on.error().message).c_str());
  auto &[gpu, plan] = *on;
  exec::CudaPointers pointers;
  pointers.params = gpu.params.get();
  int enqueued = 0;
  for (auto _ : state) {
    if (!plan->run(*gpu.kernels, pointers, gpu.device->stream()))
      return state.SkipWithError("a run failed");
    if (++enqueued % 64 == 0) { // no stream takes launches without end
      state.PauseTiming();
      (void)gpu.device->synchronize("the runs");
      state.ResumeTiming();
    }
  }
}

#define DEFT_BENCH(function)                                                                                 \
  BENCHMARK_CAPTURE(function, few_shot, fewShot)->Arg(64)->Arg(1000)->Unit(benchmark::kMicrosecond);         \
  BENCHMARK_CAPTURE(function, uneven, uneven)->Arg(64)->Arg(1000)->Unit(benchmark::kMicrosecond);            \
  BENCHMARK_CAPTURE(function, binary, binary)->Arg(64)->Arg(1000)->Unit(benchmark::kMicrosecond)

#define DEFT_TIMED_BENCH(function)                                                                           \
  BENCHMARK_CAPTURE(function, few_shot, fewShot)->Arg(1000)->Unit(benchmark::kMicrosecond)->UseManualTime(); \
  BENCHMARK_CAPTURE(function, uneven, uneven)->Arg(1000)->Unit(benchmark::kMicrosecond)->UseManualTime();    \
  BENCHMARK_CAPTURE(function, binary, binary)->Arg(1000)->Unit(benchmark::kMicrosecond)->UseManualTime()

/// Few will do: to empty the caches takes some 20 ms.
#define DEFT_COLD_BENCH(function)                                                                            \
  BENCHMARK_CAPTURE(function, few_shot, fewShot)                                                             \
      ->Arg(1000)                                                                                            \
      ->Unit(benchmark::kMicrosecond)                                                                        \
      ->UseManualTime()                                                                                      \
      ->Iterations(50);                                                                                      \
  BENCHMARK_CAPTURE(function, binary, binary)                                                                \
      ->Arg(1000)                                                                                            \
      ->Unit(benchmark::kMicrosecond)                                                                        \
      ->UseManualTime()                                                                                      \
      ->Iterations(50)

DEFT_BENCH(write);
DEFT_BENCH(planAndWrite);
DEFT_BENCH(planMixedAndWrite);
DEFT_COLD_BENCH(planColdAndWrite);
DEFT_COLD_BENCH(planMixedColdAndWrite);
DEFT_TIMED_BENCH(advanceAndWrite);
DEFT_TIMED_BENCH(advanceMixedAndWrite);
DEFT_TIMED_BENCH(writeAndUpload);
DEFT_TIMED_BENCH(planAndUpload);
DEFT_TIMED_BENCH(planMixedAndUpload);
DEFT_TIMED_BENCH(advanceAndUpload);
DEFT_TIMED_BENCH(advanceMixedAndUpload);
DEFT_BENCH(run);

} // namespace
} // namespace deft

BENCHMARK_MAIN();
