#include "compiler/support/InOrder.h"
#include "runtime/device/Driver.h"
#include "runtime/exec/cuda/CudaExecutor.h"
#include "runtime/module_cache/CompileKernels.h"
#include "tests/gpu/random/Backend.h"
#include "tests/gpu/random/Configs.h"

namespace deft::gpu_test {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

class CudaKernels : public Kernels {
public:
  CudaKernels(const std::shared_ptr<device::Device> &device, const spec::Variant &variant,
              std::unique_ptr<exec::CudaExecutor> executor)
      : inputs_(device, variant), executor_(std::move(executor)) {}
  Result<void> load(const exec::Inputs &inputs) override {
    if (auto poisoned = inputs_.poisonInputs(); !poisoned)
      return poisoned;
    return inputs_.load(inputs);
  }
  Result<void> prepare(const plan::Plan &plan) override {
    queryCount_ = plan.queryCount();
    return executor_->prepare(plan);
  }
  Result<void> run(exec::Outputs &outputs) override {
    return support::inOrder([&] { return executor_->poison(); }, [&] { return inputs_.poisonOutputs(); },
                            [&] { return executor_->enqueue(inputs_); },
                            [&] { return inputs_.read(queryCount_, outputs); });
  }
  int blocks() const override { return executor_->blocksAtOnce(); }

private:
  exec::CudaInputs inputs_;
  std::unique_ptr<exec::CudaExecutor> executor_;
  int queryCount_ = 0; ///< of what was prepared
};

class CudaBackend : public Backend {
public:
  static Result<std::unique_ptr<Backend>> open(const CompilerOptions &options) {
    const auto driver = device::Driver::load();
    if (!driver)
      return driver.error();
    auto device = device::Device::open(*driver);
    if (!device)
      return device.error();
    const device::DeviceFacts &facts = (*device)->facts();
    return open(target::targetForDevice(facts.major, facts.minor), *device, options);
  }

  static Result<std::unique_ptr<Backend>>
  open(const target::Target *target, std::shared_ptr<device::Device> device, const CompilerOptions &options) {
    if (!target)
      return Error{ErrorCode::Usage, "no such architecture is known", "deftc knows " + target::targetNames()};
    auto nvrtc = nvrtc::Nvrtc::load();
    if (!nvrtc)
      return nvrtc.error();
    auto backend = std::make_unique<CudaBackend>();
    backend->device_ = std::move(device);
    backend->target_ = target;
    backend->nvrtc_ = *nvrtc;
    backend->cache_ = module_cache::CubinCache::openDefault();
    backend->options_ = options;
    return std::unique_ptr<Backend>(std::move(backend));
  }

  std::string device() const override { return device_ ? device_->facts().name : std::string(target_->arch); }
  std::vector<config::Config> configs(Random &random, const spec::Variant &variant) const override {
    return randomConfigs(random, variant, *target_, options_.otherConfigs);
  }
  std::size_t invariantAt() const override { return 1; }
  Result<package::KernelSet> compile(const package::PackagedVariant &packaged,
                                     const config::Config &config) const override {
    return module_cache::compileLayers(cache_.get(), *nvrtc_, packaged.source, config, *target_,
                                       {.lineInfo = options_.lineInfo, .ptx = false});
  }
  Result<std::unique_ptr<Kernels>> open(const spec::Variant &variant,
                                        const package::KernelSet &kernels) const override {
    auto executor = exec::CudaExecutor::create(device_, variant, kernels);
    if (!executor)
      return executor.error();
    return std::unique_ptr<Kernels>(std::make_unique<CudaKernels>(device_, variant, std::move(*executor)));
  }

private:
  std::shared_ptr<device::Device> device_; ///< null: only compiles
  const target::Target *target_ = nullptr;
  std::shared_ptr<const nvrtc::Nvrtc> nvrtc_;
  std::unique_ptr<module_cache::CubinCache> cache_;
  CompilerOptions options_;
};

} // namespace

Result<std::unique_ptr<Backend>> openCudaBackend(const CompilerOptions &options) {
  return CudaBackend::open(options);
}

Result<std::unique_ptr<Backend>> openCompiler(const std::string &arch, const CompilerOptions &options) {
  return CudaBackend::open(target::findTarget(arch), nullptr, options);
}

} // namespace deft::gpu_test
