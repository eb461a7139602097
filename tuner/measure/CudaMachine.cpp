#include "runtime/device/Timer.h"
#include "runtime/exec/cuda/CudaPlan.h"
#include "tuner/measure/Machine.h"
#include "tuner/measure/Worker.h"

#include <algorithm>
#include <chrono>

namespace deft::measure {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

using Clock = std::chrono::steady_clock;

/// A GPU that had nothing to do for longer is slower for a while.
constexpr std::chrono::milliseconds kAwake{100};
constexpr int kWakingRuns = 64;

/// What the runs of one measurement may take together.
constexpr double kMostUs = 1500;
constexpr int kFewestRuns = 3;

/// A set of inputs on the device.
struct Loaded {
  explicit Loaded(const std::shared_ptr<device::Device> &device)
      : q(device), k(device), v(device), pageTable(device), out(device), lse(device) {}

  device::Buffer q, k, v, pageTable, out, lse;
  std::unique_ptr<const exec::CudaParams> params;
  exec::CudaPointers pointers;
};

/// The inputs of a class on the device, which all candidates read.
struct CudaState {
  CudaState(const spec::Variant &variant, std::shared_ptr<device::Device> device, device::Timer timer)
      : variant(variant), device(std::move(device)), timer(std::move(timer)),
        sets{Loaded(this->device), Loaded(this->device)} {}

  const spec::Variant &variant;
  std::shared_ptr<device::Device> device;
  device::Timer timer;
  Loaded sets[kInputSets];
  Clock::time_point lastUse; ///< to time something

  Loaded &of(InputSet set) { return sets[static_cast<std::size_t>(set)]; }
};

/// The first failure of several steps.
template <typename... Steps> Result<void> inOrder(Steps... steps) {
  Result<void> result;
  ((result = steps(), result.ok()) && ...);
  return result;
}

class CudaRunner : public Runner {
public:
  CudaRunner(CudaState &state, std::shared_ptr<const exec::CudaKernels> kernels,
             std::unique_ptr<exec::CudaPlan> plan)
      : state_(state), kernels_(std::move(kernels)), plan_(std::move(plan)) {}

  int blocks() const override { return kernels_->blocksAtOnce(); }

  Result<void> run(const plan::Plan &plan, InputSet set, exec::Outputs &outputs) override {
    Loaded &loaded = state_.of(set);
    const auto rows =
        static_cast<std::size_t>(plan.queryCount()) * static_cast<std::size_t>(state_.variant.queryHeads);
    outputs.out.resize(rows * static_cast<std::size_t>(state_.variant.headDim));
    outputs.lse.resize(state_.variant.withLse ? rows : 0);
    const std::size_t outBytes = outputs.out.size() * sizeof(std::uint16_t);
    const std::size_t lseBytes = outputs.lse.size() * sizeof(float);
    // NaN everywhere, so that a row nobody writes is seen.
    return inOrder([&] { return prepare(plan); }, [&] { return loaded.out.fill(0xff, outBytes); },
                   [&] { return loaded.lse.fill(0xff, lseBytes); }, [&] { return enqueue(loaded); },
                   [&] { return state_.device->synchronize("the attention failed"); },
                   [&] { return loaded.out.download(outputs.out.data(), outBytes); },
                   [&] { return loaded.lse.download(outputs.lse.data(), lseBytes); });
  }

  /// One graph, replayed on a cold L2. The timer tells the median, not the runs.
  Result<std::vector<double>> time(const plan::Plan &plan, int repeats) override {
    if (auto prepared = prepare(plan); !prepared)
      return prepared.error();
    const auto enqueue = [&] { return this->enqueue(state_.of(InputSet::Values)); };
    if (Clock::now() - state_.lastUse > kAwake) // its clocks have gone down: a few milliseconds of work
      if (auto woken = state_.timer.time([&] { return enqueue(); }, {kWakingRuns, /*coldL2=*/true}); !woken)
        return woken.error();
    // Of runs that take long, few are as exact.
    const int runs = std::clamp(static_cast<int>(kMostUs / std::max(lastUs_, 1.0)),
                                std::min(kFewestRuns, repeats), repeats);
    const auto timing = state_.timer.time([&] { return enqueue(); }, {runs, /*coldL2=*/true});
    state_.lastUse = Clock::now();
    if (!timing)
      return timing.error();
    lastUs_ = timing->medianUs;
    return std::vector<double>{timing->medianUs};
  }

private:
  Result<void> prepare(const plan::Plan &plan) {
    return inOrder([&] { return state_.device->synchronize("the run before failed"); },
                   [&] { return plan_->setRoom(exec::PlanRoom::of(plan)); },
                   [&] { return plan_->write(plan); },
                   [&] { return plan_->upload(state_.device->stream()); });
  }
  Result<void> enqueue(const Loaded &loaded) {
    return plan_->run(*kernels_, loaded.pointers, state_.device->stream());
  }

  CudaState &state_;
  std::shared_ptr<const exec::CudaKernels> kernels_;
  std::unique_ptr<exec::CudaPlan> plan_;
  double lastUs_ = 0; ///< of a run; 0: not known
};

class CudaMachine : public Machine {
public:
  explicit CudaMachine(std::unique_ptr<CudaState> state) : state_(std::move(state)) {}

  config_cache::DeviceKey key() const override {
    return config_cache::DeviceKey::ofGpu(state_->device->facts());
  }
  std::string driver() const override {
    const int version = state_->device->driver().version();
    return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }

  Result<void> load(exec::Inputs &inputs, InputSet set) override {
    const CudaState &state = *state_;
    Loaded &to = state_->of(set);
    auto params = exec::CudaParams::upload(state.device, state.variant, inputs.params);
    if (!params)
      return params.error();
    to.params = std::move(*params);
    const auto rows =
        static_cast<std::size_t>(inputs.queryCount) * static_cast<std::size_t>(state.variant.queryHeads);
    auto loaded = inOrder([&] { return to.q.upload(inputs.q, "the queries"); },
                          [&] { return to.k.upload(inputs.k, "the K cache"); },
                          [&] { return to.v.upload(inputs.v, "the V cache"); },
                          [&] { return to.pageTable.upload(inputs.pageTable, "the page table"); },
                          [&] {
                            return to.out.reserve(rows * static_cast<std::size_t>(state.variant.headDim) *
                                                      sizeof(std::uint16_t),
                                                  "the output");
                          },
                          [&] { return to.lse.reserve(rows * sizeof(float), "the lse"); });
    to.pointers = {to.q.as<void>(),
                   to.k.as<void>(),
                   to.v.as<void>(),
                   to.pageTable.as<int>(),
                   static_cast<int>(inputs.pageTable.size()),
                   inputs.cache,
                   to.out.as<void>(),
                   state.variant.withLse ? to.lse.as<float>() : nullptr,
                   to.params.get()};
    return loaded;
  }

  Result<std::unique_ptr<Runner>> open(const package::KernelSet *kernels) override {
    if (!kernels)
      return Error{ErrorCode::Internal, "a candidate on a GPU without kernels", ""};
    auto loaded = exec::CudaKernels::load(state_->device, state_->variant, *kernels);
    if (!loaded)
      return loaded.error();
    auto plan = exec::CudaPlan::create(*loaded, {});
    if (!plan)
      return plan.error();
    return std::unique_ptr<Runner>(
        std::make_unique<CudaRunner>(*state_, std::move(*loaded), std::move(*plan)));
  }

private:
  std::unique_ptr<CudaState> state_;
};

/// Answers anything, once it has opened a device.
class Probe : public Service {
public:
  Result<Message> handle(const Message &) override { return Message{nlohmann::json::object(), {}}; }
};

} // namespace

bool hasCuda() {
  auto worker = Worker::start([]() -> Result<std::unique_ptr<Service>> {
    if (auto device = device::Device::open(); !device)
      return device.error();
    return std::unique_ptr<Service>(std::make_unique<Probe>());
  });
  constexpr double kSeconds = 60;
  return worker && worker->ask({nlohmann::json::object(), {}}, kSeconds).state == Worker::Answer::State::Done;
}

Result<std::unique_ptr<Machine>> openCuda(const spec::Variant &variant) {
  auto device = device::Device::open();
  if (!device)
    return device.error();
  auto timer = device::Timer::create(*device);
  if (!timer)
    return timer.error();
  return std::unique_ptr<Machine>(
      std::make_unique<CudaMachine>(std::make_unique<CudaState>(variant, *device, std::move(*timer))));
}

} // namespace deft::measure
