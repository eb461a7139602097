#include "runtime/device/Timer.h"
#include "runtime/exec/cuda/CudaExecutor.h"
#include "tools/deftc/RunBackend.h"

#include <ostream>

namespace deft::cli {

using support::Result;

namespace {

class Cuda : public RunBackend {
public:
  Cuda(std::shared_ptr<device::Device> device, config::Config config,
       std::unique_ptr<exec::CudaExecutor> executor)
      : device_(std::move(device)), config_(std::move(config)), executor_(std::move(executor)) {}

  std::string name() const override { return "cuda"; }
  std::string device() const override { return device_->facts().name; }
  const config::Config &config() const override { return config_; }
  int blocks() const override { return executor_->blocksAtOnce(); }
  const device::Ceilings *ceilings() const override { return device::ceilingsOf(device_->facts().name); }

  Result<void> load(const exec::Inputs &inputs) override { return executor_->load(inputs); }

  Result<RunTimes> run(const plan::Plan &plan, exec::Outputs &outputs, int repeats) override {
    if (auto prepared = executor_->prepare(plan); !prepared)
      return prepared.error();
    if (auto enqueued = executor_->enqueue(); !enqueued)
      return enqueued.error();
    if (auto read = executor_->read(outputs); !read)
      return read.error();
    device::TimerOptions options;
    if (repeats > 0)
      options.repeats = repeats;
    const auto timing = device::timeOnDevice(device_, [&] { return executor_->enqueue(); }, options);
    if (!timing)
      return timing.error();
    return RunTimes{timing->medianUs, timing->fastestUs, timing->slowestUs, options.repeats};
  }

private:
  std::shared_ptr<device::Device> device_;
  config::Config config_;
  std::unique_ptr<exec::CudaExecutor> executor_;
};

} // namespace

Result<std::unique_ptr<RunBackend>> openCuda(const jit::Program &program, Context &context, bool isRequired) {
  const auto absent = [&](const support::Error &error) {
    return isRequired ? Result<std::unique_ptr<RunBackend>>(error)
                      : Result<std::unique_ptr<RunBackend>>(nullptr);
  };
  const auto driver = device::Driver::load();
  if (!driver)
    return absent(driver.error());
  const auto device = device::Device::open(*driver);
  if (!device)
    return absent(device.error());
  std::string warning;
  auto kernels = program.cudaKernels((*device)->facts().major, (*device)->facts().minor, warning);
  if (!warning.empty())
    context.err << "warning: " << warning << '\n';
  if (!kernels)
    return kernels.error();
  auto executor = exec::CudaExecutor::create(*device, program.variant(), *kernels);
  if (!executor)
    return executor.error();
  return std::unique_ptr<RunBackend>(
      std::make_unique<Cuda>(*device, std::move(kernels->config), std::move(*executor)));
}

} // namespace deft::cli
