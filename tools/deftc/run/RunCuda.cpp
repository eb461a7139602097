#include "compiler/target/Target.h"
#include "runtime/device/Timer.h"
#include "runtime/exec/cuda/CudaExecutor.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/run/RunBackend.h"

#include <optional>
#include <ostream>

namespace deft::cli {

using support::Result;

namespace {

class Cuda : public RunBackend {
public:
  Cuda(std::shared_ptr<device::Device> device, config_cache::ConfigChooser chooser,
       std::unique_ptr<exec::CudaExecutor> executor)
      : RunBackend(std::move(chooser)), device_(std::move(device)), executor_(std::move(executor)) {}

  std::string name() const override { return "cuda"; }
  std::string device() const override { return device_->facts().name; }
  int blocks() const override { return executor_->blocksAtOnce(); }
  const device::Ceilings *ceilings() const override { return device::ceilingsOf(device_->facts().name); }

  Result<void> load(const exec::Inputs &inputs) override { return executor_->load(inputs); }

  Result<void> runOnce(const plan::Plan &plan, exec::Outputs &outputs) override {
    if (auto prepared = executor_->prepare(plan); !prepared)
      return prepared;
    if (auto enqueued = executor_->enqueue(); !enqueued)
      return enqueued;
    return executor_->read(outputs);
  }

  Result<RunTimes> run(const plan::Plan &plan, exec::Outputs &outputs, int repeats) override {
    if (auto ran = runOnce(plan, outputs); !ran)
      return ran.error();
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
  std::unique_ptr<exec::CudaExecutor> executor_;
};

} // namespace

namespace {

/// The kernels of the config that the first tree gets. Where they cannot be made (no NVRTC beside a package,
/// say) a tuned config is given up for the untuned one, whose kernels a package has; one that the user named
/// is not.
Result<package::KernelSet> makeKernels(Context &context, const RunSubject &subject,
                                       const device::DeviceFacts &facts,
                                       std::optional<config_cache::ConfigChooser> &chooser) {
  const program::Program &program = subject.program;
  const auto untuned = program.untunedConfigs(facts.major, facts.minor);
  if (!untuned)
    return untuned.error();
  const target::Target *target = target::targetForDevice(facts.major, facts.minor);
  const auto key = config_cache::DeviceKey::ofGpu(facts);
  chooser.emplace(loadConfigs(context, subject.configPath, key), program.sharedVariant(), target, *untuned,
                  facts.multiprocessors);
  const config_cache::Selection &selection = chooser->choose(subject.firstTree);
  std::string warning;
  auto kernels = program.cudaKernels(facts.major, facts.minor, selection.config(), warning);
  const bool isTuned =
      selection.rule() != config_cache::Rule::Heuristic && selection.rule() != config_cache::Rule::Override;
  if (!kernels && isTuned) {
    context.err << "warning: the tuned config is not used: " << kernels.error().message << '\n';
    chooser.emplace(std::make_shared<config_cache::ConfigCache>(), program.sharedVariant(), target, *untuned,
                    facts.multiprocessors);
    const config::Config &config = chooser->choose(subject.firstTree).config();
    kernels = program.cudaKernels(facts.major, facts.minor, config, warning);
  }
  chooser->pinKernels();
  if (!warning.empty())
    context.err << "warning: " << warning << '\n';
  return kernels;
}

} // namespace

Result<std::unique_ptr<RunBackend>> openCuda(Context &context, const RunSubject &subject, bool isRequired) {
  const auto absent = [&](const support::Error &error) {
    return isRequired ? Result<std::unique_ptr<RunBackend>>(error)
                      : Result<std::unique_ptr<RunBackend>>(nullptr);
  };
  const auto device = device::Device::open();
  if (!device)
    return absent(device.error());
  std::optional<config_cache::ConfigChooser> chooser;
  auto kernels = makeKernels(context, subject, (*device)->facts(), chooser);
  if (!kernels)
    return kernels.error();
  auto executor = exec::CudaExecutor::create(*device, subject.program.variant(), *kernels);
  if (!executor)
    return executor.error();
  return std::unique_ptr<RunBackend>(
      std::make_unique<Cuda>(*device, std::move(*chooser), std::move(*executor)));
}

} // namespace deft::cli
