#include "runtime/exec/cpu/CpuExecutor.h"
#include "runtime/program/CpuConfig.h"
#include "runtime/program/Program.h"
#include "tests/gpu/random/Backend.h"

namespace deft::gpu_test {

using support::Result;

namespace {

class CpuKernels : public Kernels {
public:
  CpuKernels(const spec::Variant &variant, exec::CpuKernel kernel, exec::CpuExecutor executor)
      : variant_(variant), kernel_(std::move(kernel)), executor_(std::move(executor)) {}
  Result<void> load(const exec::Inputs &inputs) override {
    inputs_ = &inputs;
    return {};
  }
  Result<void> prepare(const plan::Plan &plan) override {
    plan_ = &plan;
    return {};
  }
  Result<void> run(exec::Outputs &outputs) override {
    executor_.poison();
    return executor_.run(kernel_, variant_, *plan_, *inputs_, outputs);
  }
  int blocks() const override { return executor_.threads(); }

private:
  const spec::Variant &variant_;
  exec::CpuKernel kernel_;
  exec::CpuExecutor executor_;
  const exec::Inputs *inputs_ = nullptr;
  const plan::Plan *plan_ = nullptr;
};

class CpuBackend : public Backend {
public:
  explicit CpuBackend(std::string package) : package_(std::move(package)) {}
  std::string device() const override { return "the host's processor"; }
  std::vector<config::Config> configs(Random &random, const spec::Variant &variant) const override {
    auto config = program::cpuConfig(variant, 1);
    return config ? std::vector<config::Config>{std::move(*config)} : std::vector<config::Config>{};
  }
  std::size_t invariantAt() const override { return 0; }
  Result<package::KernelSet> compile(const package::PackagedVariant &packaged,
                                     const config::Config &config) const override {
    package::KernelSet nothing; // the code is in the package
    nothing.config = config;
    return nothing;
  }
  Result<std::unique_ptr<Kernels>> open(const spec::Variant &variant,
                                        const package::KernelSet &) const override {
    auto program = program::Program::fromPackage(package_, variant.name, "");
    if (!program)
      return program.error();
    auto kernel = program->cpuKernel();
    if (!kernel)
      return kernel.error();
    auto executor = exec::CpuExecutor::create(1);
    if (!executor)
      return executor.error();
    return std::unique_ptr<Kernels>(
        std::make_unique<CpuKernels>(variant, std::move(*kernel), std::move(*executor)));
  }

private:
  std::string package_;
};

} // namespace

Result<std::unique_ptr<Backend>> openCpuBackend(const std::string &packagePath) {
  return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(packagePath));
}

} // namespace deft::gpu_test
