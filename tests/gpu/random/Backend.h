#pragma once

#include "compiler/config/Config.h"
#include "compiler/package/Package.h"
#include "runtime/exec/Inputs.h"
#include "runtime/plan/Plan.h"
#include "runtime/program/LoadedSpec.h"
#include "tests/gpu/random/Random.h"

#include <memory>
#include <string>
#include <vector>

namespace deft::gpu_test {

/// One variant under one config, ready to run.
class Kernels {
public:
  virtual ~Kernels() = default;
  virtual support::Result<void> load(const exec::Inputs &inputs) = 0;
  virtual support::Result<void> prepare(const plan::Plan &plan) = 0;
  /// A run of what was prepared, and its results. Before it all that it must write is NaN: partials, and
  /// outputs; and so is what larger runs have left there.
  virtual support::Result<void> run(exec::Outputs &outputs) = 0;
  virtual int blocks() const = 0;
};

/// Where cases run.
class Backend {
public:
  virtual ~Backend() = default;
  virtual std::string device() const = 0;
  /// Configs to run a variant under; from `invariantAt()` on, those whose family lets them can be invariant.
  virtual std::vector<config::Config> configs(Random &random, const spec::Variant &variant) const = 0;
  virtual std::size_t invariantAt() const = 0;
  /// Compiles; from any thread.
  virtual support::Result<package::KernelSet> compile(const package::PackagedVariant &packaged,
                                                      const config::Config &config) const = 0;
  virtual support::Result<std::unique_ptr<Kernels>> open(const spec::Variant &variant,
                                                         const package::KernelSet &kernels) const = 0;
};

struct CompilerOptions {
  int otherConfigs = 2;  ///< of each variant, beside the default
  bool lineInfo = false; ///< kernels know their source lines
};

/// The first GPU.
support::Result<std::unique_ptr<Backend>> openCudaBackend(const CompilerOptions &options);
/// Compiles for an architecture, and runs nothing.
support::Result<std::unique_ptr<Backend>> openCompiler(const std::string &arch,
                                                       const CompilerOptions &options);
/// The native code of a package: to try the cases themselves where there is no GPU.
support::Result<std::unique_ptr<Backend>> openCpuBackend(const std::string &packagePath);

} // namespace deft::gpu_test
