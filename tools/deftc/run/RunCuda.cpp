#include "runtime/device/Timer.h"
#include "runtime/exec/cuda/CudaExecutor.h"
#include "runtime/program/KernelChoice.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/run/RunBackend.h"

#include <ostream>

namespace deft::cli {

using support::Result;

namespace {

class Cuda : public RunBackend {
public:
  Cuda(std::shared_ptr<device::Device> device, const spec::Variant &variant,
       config_cache::ConfigChooser chooser, std::unique_ptr<exec::CudaExecutor> executor)
      : RunBackend(std::move(chooser)), device_(std::move(device)), inputs_(device_, variant),
        executor_(std::move(executor)) {}

  std::string name() const override { return "cuda"; }
  std::string device() const override { return device_->facts().name; }
  int blocks() const override { return executor_->blocksAtOnce(); }
  const device::Ceilings *ceilings() const override { return device::ceilingsOf(device_->facts().name); }

  Result<void> load(const exec::Inputs &inputs) override { return inputs_.load(inputs); }

  Result<void> runOnce(const plan::Plan &plan, exec::Outputs &outputs) override {
    return executor_->run(plan, inputs_, outputs);
  }

  Result<RunTimes> run(const plan::Plan &plan, exec::Outputs &outputs, int repeats) override {
    if (auto ran = runOnce(plan, outputs); !ran)
      return ran.error();
    device::TimerOptions options;
    if (repeats > 0)
      options.repeats = repeats;
    const auto timing = device::timeOnDevice(device_, [&] { return executor_->enqueue(inputs_); }, options);
    if (!timing)
      return timing.error();
    return RunTimes{timing->medianUs, timing->fastestUs, timing->slowestUs, options.repeats};
  }

private:
  std::shared_ptr<device::Device> device_;
  exec::CudaInputs inputs_;
  std::unique_ptr<exec::CudaExecutor> executor_;
};

} // namespace

Result<std::unique_ptr<RunBackend>> openCuda(Context &context, const RunSubject &subject, bool isRequired) {
  const auto absent = [&](const support::Error &error) {
    return isRequired ? Result<std::unique_ptr<RunBackend>>(error)
                      : Result<std::unique_ptr<RunBackend>>(nullptr);
  };
  const auto device = device::Device::open();
  if (!device)
    return absent(device.error());
  const device::DeviceFacts &facts = (*device)->facts();
  auto choice = program::chooseKernels(
      subject.program, facts, loadConfigs(context, subject.configs, config_cache::DeviceKey::ofGpu(facts)),
      subject.firstTree);
  if (!choice)
    return choice.error();
  for (const std::string &warning : choice->warnings)
    context.err << "warning: " << warning << '\n';
  choice->chooser.pinKernels();
  auto executor = exec::CudaExecutor::create(*device, subject.program.variant(), choice->kernels);
  if (!executor)
    return executor.error();
  return std::unique_ptr<RunBackend>(std::make_unique<Cuda>(
      *device, subject.program.variant(), std::move(choice->chooser), std::move(*executor)));
}

} // namespace deft::cli
