#pragma once

#include "compiler/package/Package.h"
#include "runtime/exec/cpu/CpuKernel.h"
#include "tools/deftc/SpecInput.h"

#include <memory>
#include <optional>
#include <string>

namespace deft::cli {

/// What `run` runs: one variant, out of a spec (compiled now) or out of a package (compiled before).
class RunInput {
public:
  /// `path` is a spec, the name of a shipped spec, or a package; `path#name` chooses a variant, as
  /// `variantName` does.
  static support::Result<RunInput> open(Context &context, std::string path, std::string variantName);

  const spec::Variant &variant() const { return *variant_; }

  /// The kernels that a package has for a GPU of this compute capability; else those of the default
  /// config, by NVRTC and the cache of kernels, whose warning goes to `context.err`.
  support::Result<package::KernelSet> cudaKernels(Context &context, int major, int minor) const;

  /// The package's native code, else that of the JIT.
  support::Result<exec::CpuKernel> cpuKernel() const;

private:
  const package::PackagedVariant *packaged() const;
  const package::KernelSet *packagedKernels(int major, int minor) const;

  std::shared_ptr<LoadedSpec> spec_;       ///< a package's own spec, when it is one
  const spec::Variant *variant_ = nullptr; ///< of spec_
  std::optional<package::Package> package_;
};

} // namespace deft::cli
