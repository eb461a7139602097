#include "tests/gpu/selection/Layers.h"

#include "compiler/kernels/DefaultConfig.h"
#include "compiler/support/InOrder.h"
#include "runtime/device/Driver.h"
#include "runtime/exec/DrawnLists.h"
#include "runtime/exec/cpu/CpuExecutor.h"
#include "runtime/exec/cuda/CudaExecutor.h"
#include "runtime/program/CpuConfig.h"

#include <limits>

namespace deft::gpu_test {

using support::inOrder;
using support::Result;

namespace {

constexpr std::uint64_t kListSeed = 11;

exec::DrawnLists drawn(const spec::Variant &variant, const plan::Plan &plan, const exec::Inputs &inputs,
                       int budget) {
  plan::Paths paths;
  paths.read(plan);
  return exec::drawLists(paths, inputs, variant.cache.pageSize, budget, /*holes=*/true, kListSeed);
}

class GpuLayers : public Layers {
public:
  GpuLayers(const std::shared_ptr<device::Device> &device, const Subject &subject,
            std::unique_ptr<exec::CudaExecutor> executor)
      : variant_(subject.variant), budget_(subject.budget), inputs_(device, subject.variant),
        executor_(std::move(executor)) {}
  int blocks() const override { return executor_->blocksAtOnce(); }
  Result<void> load(const exec::Inputs &inputs) override {
    host_ = &inputs;
    return inOrder([&] { return inputs_.poisonInputs(); }, [&] { return inputs_.load(inputs); });
  }
  Result<void> full(const plan::Plan &plan, exec::Outputs &outputs) override {
    return inOrder([&] { return executor_->poison(); },
                   [&] { return executor_->run(plan, inputs_, outputs); });
  }
  Result<void> selecting(const plan::Plan &plan, exec::Outputs &outputs,
                         exec::Selection &selection) override {
    if (variant_.readsGivenLists()) {
      const exec::DrawnLists lists = drawn(variant_, plan, *host_, budget_);
      selection = lists.selection;
      return inOrder([&] { return full(plan, outputs); }, [&] { return inputs_.loadLists(lists.given()); });
    }
    return inOrder([&] { return executor_->poison(); },
                   [&] { return executor_->runSelecting(plan, inputs_, outputs, selection); });
  }
  Result<void> sparse(const exec::Selection &, exec::Outputs &outputs) override {
    return inOrder([&] { return executor_->poison(); },
                   [&] { return executor_->runSparse(inputs_, outputs); });
  }

private:
  const spec::Variant &variant_;
  const int budget_;
  const exec::Inputs *host_ = nullptr;
  exec::CudaInputs inputs_;
  std::unique_ptr<exec::CudaExecutor> executor_;
};

class Gpu : public Device {
public:
  explicit Gpu(std::shared_ptr<device::Device> device) : device_(std::move(device)) {}
  std::string name() const override { return device_->facts().name; }
  config::DeviceKind kind() const override { return config::DeviceKind::Gpu; }

  /// The first and the last of the default ones, which deal tokens where there are such, and two phases of
  /// the family of all GPUs.
  Result<std::vector<config::Config>> configs(const program::Program &program) const override {
    const device::DeviceFacts &facts = device_->facts();
    auto untuned = program.untunedConfigs(facts.major, facts.minor);
    if (!untuned)
      return untuned;
    std::vector<config::Config> tried{untuned->front()};
    if (untuned->size() > 1)
      tried.push_back(untuned->back());
    if (auto any = kernels::defaultConfigOfAnyGpu(program.variant()))
      tried.push_back(std::move(*any));
    return tried;
  }
  Result<void> compile(const program::Program &program, const config::Config &config) override {
    const auto kernels = kernelsOf(program, config);
    return kernels ? Result<void>() : kernels.error();
  }
  Result<std::unique_ptr<Layers>> open(const program::Program &program, const Subject &subject) override {
    const auto kernels = kernelsOf(program, subject.config);
    if (!kernels)
      return kernels.error();
    auto executor = exec::CudaExecutor::create(device_, subject.variant, *kernels, subject.budget);
    if (!executor)
      return executor.error();
    return std::unique_ptr<Layers>(std::make_unique<GpuLayers>(device_, subject, std::move(*executor)));
  }

private:
  Result<package::KernelSet> kernelsOf(const program::Program &program, const config::Config &config) const {
    std::string warning;
    return program.cudaKernels(device_->facts().major, device_->facts().minor, config, warning);
  }

  std::shared_ptr<device::Device> device_;
};

class CpuLayers : public Layers {
public:
  CpuLayers(const Subject &subject, exec::CpuKernel kernel, exec::CpuExecutor executor)
      : variant_(subject.variant), budget_(subject.budget), kernel_(std::move(kernel)),
        executor_(std::move(executor)) {}
  int blocks() const override { return executor_.threads(); }
  Result<void> load(const exec::Inputs &inputs) override {
    inputs_ = &inputs;
    return {};
  }
  Result<void> full(const plan::Plan &plan, exec::Outputs &outputs) override {
    executor_.poison();
    return executor_.run(kernel_, variant_, plan, *inputs_, outputs);
  }
  Result<void> selecting(const plan::Plan &plan, exec::Outputs &outputs,
                         exec::Selection &selection) override {
    if (variant_.readsGivenLists()) {
      lists_ = drawn(variant_, plan, *inputs_, budget_);
      selection = lists_.selection;
      plan_ = &plan;
      return full(plan, outputs);
    }
    return run(outputs, [&](const auto &view, const auto &out) {
      return executor_.runSelecting(kernel_, variant_, plan, view, out, budget_, selection, paths_);
    });
  }
  Result<void> sparse(const exec::Selection &selection, exec::Outputs &outputs) override {
    return run(outputs, [&](const auto &view, const auto &out) {
      if (variant_.readsGivenLists())
        return executor_.runSparse(kernel_, variant_, lists_.given(), *plan_, view, out);
      return executor_.runSparse(kernel_, variant_, selection, paths_, view, out);
    });
  }

private:
  template <class Run> Result<void> run(exec::Outputs &outputs, const Run &run) {
    executor_.poison();
    const auto rows =
        static_cast<std::size_t>(inputs_->queryCount) * static_cast<std::size_t>(variant_.queryHeads);
    outputs.out.assign(rows * static_cast<std::size_t>(variant_.tensors.out.dim), 0xffff);
    outputs.lse.assign(variant_.withLse ? rows : 0, std::numeric_limits<float>::quiet_NaN());
    const std::vector<abi::ParamSlot> params = inputs_->paramSlots(variant_);
    return run(exec::InputView::of(*inputs_, variant_, params),
               exec::OutputView{outputs.out.data(), variant_.withLse ? outputs.lse.data() : nullptr});
  }

  const spec::Variant &variant_;
  const int budget_;
  exec::CpuKernel kernel_;
  exec::CpuExecutor executor_;
  const exec::Inputs *inputs_ = nullptr;
  plan::Paths paths_;
  exec::DrawnLists lists_;           ///< that the last call of selecting() drew
  const plan::Plan *plan_ = nullptr; ///< of that call
};

class Cpu : public Device {
public:
  std::string name() const override { return "the host's processor"; }
  config::DeviceKind kind() const override { return config::DeviceKind::Cpu; }
  Result<std::vector<config::Config>> configs(const program::Program &program) const override {
    auto config = program::cpuConfig(program.variant(), 1);
    if (!config)
      return config.error();
    return std::vector<config::Config>{std::move(*config)};
  }
  Result<void> compile(const program::Program &, const config::Config &) override { return {}; }
  Result<std::unique_ptr<Layers>> open(const program::Program &program, const Subject &subject) override {
    auto kernel = program.cpuKernel();
    if (!kernel)
      return kernel.error();
    auto executor = exec::CpuExecutor::create(1);
    if (!executor)
      return executor.error();
    return std::unique_ptr<Layers>(
        std::make_unique<CpuLayers>(subject, std::move(*kernel), std::move(*executor)));
  }
};

} // namespace

Result<std::unique_ptr<Device>> openGpu() {
  const auto driver = device::Driver::load();
  if (!driver)
    return driver.error();
  auto device = device::Device::open(*driver);
  if (!device)
    return device.error();
  return std::unique_ptr<Device>(std::make_unique<Gpu>(std::move(*device)));
}

std::unique_ptr<Device> openCpu() { return std::make_unique<Cpu>(); }

} // namespace deft::gpu_test
