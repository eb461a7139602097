#include "runtime/device/Timer.h"
#include "runtime/exec/cuda/CudaExecutor.h"
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

/// A GPU that was idle for longer is slower for a while.
constexpr std::chrono::milliseconds kAwake{100};
constexpr int kWakingRuns = 64;

/// The limit for all runs of one measurement together.
constexpr double kMostUs = 1500;
constexpr int kFewestRuns = 3;

/// The inputs of a class on the device, shared by all candidates.
struct CudaState {
  CudaState(const spec::Variant &variant, std::shared_ptr<device::Device> device, device::Timer timer)
      : variant(variant), device(std::move(device)), timer(std::move(timer)),
        sets{exec::CudaInputs(this->device, variant), exec::CudaInputs(this->device, variant)} {}

  const spec::Variant &variant;
  std::shared_ptr<device::Device> device;
  device::Timer timer;
  exec::CudaInputs sets[kInputSets];
  Clock::time_point lastUse; ///< for timing

  exec::CudaInputs &of(InputSet set) { return sets[static_cast<std::size_t>(set)]; }
};

class CudaRunner : public Runner {
public:
  CudaRunner(CudaState &state, std::unique_ptr<exec::CudaExecutor> executor)
      : state_(state), executor_(std::move(executor)) {}

  int blocks() const override { return executor_->blocksAtOnce(); }

  Result<void> run(const plan::Plan &plan, InputSet set, exec::Outputs &outputs) override {
    return executor_->run(plan, state_.of(set), outputs);
  }

  /// One graph, replayed on a cold L2. The timer returns only the median.
  Result<std::vector<double>> time(const plan::Plan &plan, int repeats) override {
    if (auto prepared = executor_->prepare(plan); !prepared)
      return prepared.error();
    const auto enqueue = [&] { return executor_->enqueue(state_.of(InputSet::Values)); };
    if (Clock::now() - state_.lastUse > kAwake) // its clocks have dropped: give it a few milliseconds of work
      if (auto woken = state_.timer.time([&] { return enqueue(); }, {kWakingRuns, /*coldL2=*/true}); !woken)
        return woken.error();
    // With long runs, a few are as exact.
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
  CudaState &state_;
  std::unique_ptr<exec::CudaExecutor> executor_;
  double lastUs_ = 0; ///< of a run; 0: unknown
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

  Result<void> load(exec::Inputs &inputs, InputSet set) override { return state_->of(set).load(inputs); }

  Result<std::unique_ptr<Runner>> open(const package::KernelSet *kernels) override {
    if (!kernels)
      return Error{ErrorCode::Internal, "a candidate on a GPU without kernels", ""};
    auto executor = exec::CudaExecutor::create(state_->device, state_->variant, *kernels);
    if (!executor)
      return executor.error();
    return std::unique_ptr<Runner>(std::make_unique<CudaRunner>(*state_, std::move(*executor)));
  }

private:
  std::unique_ptr<CudaState> state_;
};

/// Answers any request once it has opened a device.
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
