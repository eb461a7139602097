/// What a run costs the host beside the calls of the driver: CudaPlan::run of each of 40 layers in turn, with
/// kernels of family sm90, whose caches have tensor maps. Goal: 3 us a run. The driver is that of the tests,
/// and what its calls take by themselves, measured in turn with the runs, is taken off: `driver_us`. A
/// replayed graph makes no call of ours.
///
/// Before anything is timed, a step's calls are counted: a run asks for the context and the capture, launches
/// two kernels, and no map is made twice. --benchmark_out=FILE writes JSON.

#include "runtime/exec/cuda/CudaPlan.h"
#include "runtime/plan/Planner.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/bench/SecondsSince.h"
#include "tests/support/FakeCuda.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

namespace deft {
namespace {

constexpr int kLayers = 40;

template <typename T> T need(support::Result<T> result) {
  if (!result)
    std::abort();
  return std::move(*result);
}
void need(const support::Result<void> &result) {
  if (!result)
    std::abort();
}

/// A plan of a small step on the tests' driver, uploaded, and the caches of a model.
class Model {
public:
  Model() {
    variant_.name = "bench";
    variant_.queryHeads = 32;
    variant_.kvHeads = 8;
    variant_.tensors = spec::Tensors::alike(128);
    variant_.cache = {.pageSize = 64};
    device_ = need(device::Device::open(need(device::Driver::load(DEFT_FAKE_CUDA))));
    package::KernelSet set;
    set.config.phases = {
        {.name = "tiles", .family = config::Family::Sm90, .tileQ = 128, .stages = 4, .warps = 12}};
    // The tests' driver computes nothing for entries that begin like this.
    set.attend = {{.entry = "probe_tiles", .cubin = "fake", .threads = 384, .resources = {}}};
    set.merge = {.entry = "probe_merge", .cubin = "fake", .threads = 128, .resources = {}};
    kernels_ = need(exec::CudaKernels::load(device_, variant_, set));
    params_ = need(exec::CudaParams::upload(device_, variant_, {}));
    plan_ = need(exec::CudaPlan::create(kernels_, {.room = {}, .isWatched = true}));

    tree::KvTree tree;
    const int root = need(tree.addNode(-1, 4000));
    for (int i = 0; i < 64; ++i)
      need(tree.addQuery(need(tree.addNode(root, 205))));
    const auto placement = need(tree::placeInCache(tree, {.pageSize = 64}));
    table_ = placement.pageTable;
    const auto plan = need(plan::makePlan(tree, plan::VariantFacts::of(variant_), set.config, 132));
    plan_->watch()->treeGeneration()->store(plan.generation);
    need(plan_->write(plan));
    need(plan_->upload(device_->stream()));
    pools_.resize((2 * kLayers + 1) * kPoolBytes);

    const device::cu::Api &api = device_->api();
    device::cu::Context context = nullptr;
    device::cu::Module module = nullptr;
    const bool isOpen = api.primaryCtxRetain(&context, 0) == 0 && api.ctxSetCurrent(context) == 0 &&
                        api.moduleLoadData(&module, "") == 0 &&
                        api.moduleGetFunction(&function_, module, "probe_tiles") == 0;
    if (!isOpen)
      std::abort();
  }

  void runLayer(int layer) {
    exec::CudaPointers pointers;
    std::byte *const pools = aligned(pools_.data());
    pointers.q = pointers.out = pools;
    pointers.k = pools + static_cast<std::size_t>(2 * layer) * kPoolBytes;
    pointers.v = pools + static_cast<std::size_t>(2 * layer + 1) * kPoolBytes;
    pointers.pageTable = table_.data();
    pointers.pages = static_cast<int>(table_.size());
    pointers.cache.k = pointers.cache.v = {64 * 8 * 128, 8 * 128, 128};
    pointers.params = params_.get();
    need(plan_->run(*kernels_, pointers, device_->stream()));
  }

  /// The driver's calls of a run, by themselves.
  void callDriver() {
    const device::cu::Api &api = device_->api();
    device::cu::Context context = nullptr;
    for (int question = 0; question < 3; ++question) // of the run and of each launch
      (void)api.ctxGetCurrent(&context);
    int status = 0;
    (void)api.streamIsCapturing(device_->stream(), &status);
    (void)api.launchKernel(function_, 132, 1, 1, 384, 1, 1, 0, device_->stream(), nullptr, nullptr);
    device::cu::LaunchConfig config;
    config.grid[0] = 132;
    config.stream = device_->stream();
    (void)api.launchKernelEx(&config, function_, nullptr, nullptr);
  }

private:
  static constexpr std::size_t kPoolBytes = 64;
  static std::byte *aligned(std::byte *memory) {
    return memory + (64 - reinterpret_cast<std::uintptr_t>(memory) % 64) % 64;
  }

  spec::Variant variant_;
  std::shared_ptr<device::Device> device_;
  std::shared_ptr<const exec::CudaKernels> kernels_;
  std::unique_ptr<const exec::CudaParams> params_;
  std::unique_ptr<exec::CudaPlan> plan_;
  std::vector<int> table_;
  std::vector<std::byte> pools_;
  device::cu::Function function_ = nullptr;
};

/// Seconds of a step's layers, one after the other.
template <typename Layer> double timeStep(const Layer &layer) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kLayers; ++i)
    layer(i);
  const double seconds = secondsSince(begin);
  (void)fake_cuda::takeCalls();
  return seconds;
}

void run(benchmark::State &state) {
  Model model;
  const auto runLayer = [&](int layer) { model.runLayer(layer); };
  (void)fake_cuda::takeCalls();
  (void)timeStep(runLayer); // maps are made
  for (int layer = 0; layer < kLayers; ++layer)
    runLayer(layer);
  if (const auto calls = fake_cuda::takeCalls(); calls.size() != 2 * kLayers)
    return state.SkipWithError("a step makes other calls than two launches a layer");
  double driver = 0;
  std::vector<double> ofRun; // of each step, for a mean of times on a busy machine is one of its waits
  for (auto _ : state) {
    const double runs = timeStep(runLayer), calls = timeStep([&](int) { model.callDriver(); });
    driver += calls;
    ofRun.push_back(std::max(runs - calls, 0.0) / kLayers);
    state.SetIterationTime(ofRun.back());
  }
  std::nth_element(ofRun.begin(), ofRun.begin() + static_cast<std::ptrdiff_t>(ofRun.size() / 2), ofRun.end());
  state.counters["median_us"] = ofRun[ofRun.size() / 2] * 1e6;
  state.counters["driver_us"] =
      benchmark::Counter(driver / kLayers * 1e6, benchmark::Counter::kAvgIterations);
}
BENCHMARK(run)->Unit(benchmark::kMicrosecond)->UseManualTime()->Iterations(3000);

} // namespace
} // namespace deft

BENCHMARK_MAIN();
