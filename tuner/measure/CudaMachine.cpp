#include "runtime/device/Timer.h"
#include "runtime/exec/cuda/CudaExecutor.h"
#include "tuner/measure/Machine.h"
#include "tuner/measure/Worker.h"

namespace deft::measure {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

class CudaRunner : public Runner {
public:
  CudaRunner(std::shared_ptr<device::Device> device, std::unique_ptr<exec::CudaExecutor> executor,
             exec::Inputs &inputs)
      : device_(std::move(device)), executor_(std::move(executor)), inputs_(inputs) {}

  int blocks() const override { return executor_->blocksAtOnce(); }

  Result<void> run(const plan::Plan &plan, exec::Outputs &outputs) override {
    if (auto prepared = prepare(plan); !prepared)
      return prepared;
    if (auto enqueued = executor_->enqueue(); !enqueued)
      return enqueued;
    return executor_->read(outputs);
  }

  /// One graph, replayed on a cold L2. The timer tells the median, not the runs.
  Result<std::vector<double>> time(const plan::Plan &plan, int repeats) override {
    if (auto prepared = prepare(plan); !prepared)
      return prepared.error();
    const auto timing =
        device::timeOnDevice(device_, [&] { return executor_->enqueue(); }, {repeats, /*coldL2=*/true});
    if (!timing)
      return timing.error();
    return std::vector<double>{timing->medianUs};
  }

private:
  /// Trees of one class share a cache and differ in their queries.
  Result<void> prepare(const plan::Plan &plan) {
    if (plan.queryCount() != loadedQueries_) {
      inputs_.queryCount = plan.queryCount();
      if (auto loaded = executor_->load(inputs_); !loaded)
        return loaded;
      loadedQueries_ = plan.queryCount();
    }
    return executor_->prepare(plan);
  }

  std::shared_ptr<device::Device> device_;
  std::unique_ptr<exec::CudaExecutor> executor_;
  exec::Inputs &inputs_;
  int loadedQueries_ = -1;
};

class CudaMachine : public Machine {
public:
  CudaMachine(const spec::Variant &variant, std::shared_ptr<device::Device> device)
      : variant_(variant), device_(std::move(device)) {}

  config_cache::DeviceKey key() const override { return config_cache::DeviceKey::ofGpu(device_->facts()); }
  std::string driver() const override {
    const int version = device_->driver().version();
    return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }
  Result<void> load(exec::Inputs &inputs) override {
    inputs_ = &inputs;
    return {};
  }
  Result<std::unique_ptr<Runner>> open(const package::KernelSet *kernels) override {
    if (!kernels)
      return Error{ErrorCode::Internal, "a candidate on a GPU without kernels", ""};
    auto executor = exec::CudaExecutor::create(device_, variant_, *kernels);
    if (!executor)
      return executor.error();
    return std::unique_ptr<Runner>(std::make_unique<CudaRunner>(device_, std::move(*executor), *inputs_));
  }

private:
  const spec::Variant &variant_;
  std::shared_ptr<device::Device> device_;
  exec::Inputs *inputs_ = nullptr;
};

/// Answers anything, once it has opened a device.
class Probe : public Service {
public:
  Result<Message> handle(const Message &) override { return Message{nlohmann::json::object(), {}}; }
};

} // namespace

bool hasCuda() {
  auto worker = Worker::start([]() -> Result<std::unique_ptr<Service>> {
    const auto driver = device::Driver::load();
    if (!driver)
      return driver.error();
    if (auto device = device::Device::open(*driver); !device)
      return device.error();
    return std::unique_ptr<Service>(std::make_unique<Probe>());
  });
  constexpr double kSeconds = 60;
  return worker && worker->ask({nlohmann::json::object(), {}}, kSeconds).state == Worker::Answer::State::Done;
}

Result<std::unique_ptr<Machine>> openCuda(const spec::Variant &variant) {
  const auto driver = device::Driver::load();
  if (!driver)
    return driver.error();
  auto device = device::Device::open(*driver);
  if (!device)
    return device.error();
  return std::unique_ptr<Machine>(std::make_unique<CudaMachine>(variant, std::move(*device)));
}

} // namespace deft::measure
