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
       config_cache::ConfigChooser chooser, std::unique_ptr<exec::CudaExecutor> executor,
       std::optional<config::PhaseConfig> sparseTile)
      : RunBackend(std::move(chooser)), device_(std::move(device)), inputs_(device_, variant),
        executor_(std::move(executor)), sparseTile_(std::move(sparseTile)) {}

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
    return timed(repeats, [&] { return executor_->enqueue(inputs_); });
  }

  bool selects() const override { return sparseTile_.has_value(); }
  Result<RunTimes> runSelecting(const plan::Plan &plan, exec::Outputs &outputs, exec::Selection &selection,
                                int repeats) override {
    if (auto ran = executor_->runSelecting(plan, inputs_, outputs, selection); !ran)
      return ran.error();
    return timed(repeats, [&] { return executor_->enqueueSelecting(inputs_); });
  }
  Result<RunTimes> runSparse(const exec::Selection &, exec::Outputs &outputs, int repeats) override {
    if (auto ran = executor_->runSparse(inputs_, outputs); !ran)
      return ran.error();
    return timed(repeats, [&] { return executor_->enqueueSparse(inputs_); });
  }
  Result<RunTimes> runGiven(const plan::Plan &, const exec::GivenLists &lists, exec::Outputs &outputs,
                            int repeats) override {
    if (auto loaded = inputs_.loadLists(lists); !loaded)
      return loaded.error();
    return runSparse({}, outputs, repeats);
  }
  std::optional<SparseShape> sparseShape() const override {
    const exec::SparseSplit::Cut *cut = executor_->sparseCut();
    if (!sparseTile_ || !cut)
      return std::nullopt;
    return SparseShape{*sparseTile_, cut->itemTokens, cut->isTuned};
  }

private:
  template <class Enqueue> Result<RunTimes> timed(int repeats, const Enqueue &enqueue) {
    device::TimerOptions options;
    if (repeats > 0)
      options.repeats = repeats;
    const auto timing = device::timeOnDevice(device_, enqueue, options);
    if (!timing)
      return timing.error();
    return RunTimes{timing->medianUs, timing->fastestUs, timing->slowestUs, options.repeats};
  }

  std::shared_ptr<device::Device> device_;
  exec::CudaInputs inputs_;
  std::unique_ptr<exec::CudaExecutor> executor_;
  std::optional<config::PhaseConfig> sparseTile_; ///< none: the kernels do not select
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
  ConfigSource source = subject.configs;
  source.hasSparse = subject.program.variant().select.has_value();
  auto choice = program::chooseKernels(subject.program, facts,
                                       loadConfigs(context, source, config_cache::DeviceKey::ofGpu(facts)),
                                       subject.firstTree);
  if (!choice)
    return choice.error();
  for (const std::string &warning : choice->warnings)
    context.err << "warning: " << warning << '\n';
  choice->chooser.pinKernels();
  const spec::Variant &variant = subject.program.variant();
  const bool selects = choice->kernels.selecting.has_value();
  if (variant.select && !selects)
    context.err << "warning: the kernels of `" << variant.name
                << "` do not select: the package was built before GPUs could select\n";
  auto executor = exec::CudaExecutor::create(*device, variant, choice->kernels, selects ? subject.budget : 0,
                                             std::move(choice->sparseCuts));
  if (!executor)
    return executor.error();
  return std::unique_ptr<RunBackend>(
      std::make_unique<Cuda>(*device, variant, std::move(choice->chooser), std::move(*executor),
                             selects ? std::optional(choice->kernels.selecting->sparsePhase) : std::nullopt));
}

} // namespace deft::cli
