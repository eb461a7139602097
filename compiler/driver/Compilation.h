#pragma once

#include "compiler/codegen/cuda/VariantSource.h"
#include "compiler/spec/Variant.h"
#include "compiler/support/Result.h"
#include "compiler/support/SourceManager.h"
#include "templates/deft/cpu_abi.h"

#include <memory>
#include <string>
#include <vector>

namespace deft::driver {

/// One variant on its way through MLIR; the only door to that half, so no MLIR type shows here. Cheap to make
/// (a few milliseconds), not to be shared between threads. Errors are ErrorCode::Internal: a variant that
/// passed the front end compiles.
class Compilation {
public:
  /// Imports, verifies and optimises. `sources` is only read here.
  static support::Result<Compilation> create(const spec::Variant &variant,
                                             const support::SourceManager &sources);

  Compilation(Compilation &&) noexcept;
  Compilation &operator=(Compilation &&) noexcept;
  ~Compilation();

  enum class Stage { Imported, Optimized };
  std::string irText(Stage stage) const;
  /// The IR after the first run of a pass, by its name as Passes.td has it; an error names those that there
  /// are.
  support::Result<std::string> irAfter(const std::string &pass) const;

  support::Result<codegen::cuda::VariantSource> cudaVariantSource() const;

  /// Level 3 or 4: x86-64-v3 or v4; 0: this machine.
  support::Result<std::string> llvmText(int isaLevel = 0) const;
  support::Result<std::string> cpuAsm(int isaLevel = 0) const;
  support::Result<std::string> cpuObject(int isaLevel) const;
  /// Native code for this machine; the kernel keeps it alive.
  support::Result<std::shared_ptr<const abi::CpuKernel>> jitCpuKernel() const;

  /// One shared object of several cpuObject() results.
  static support::Result<std::string> linkCpuObjects(const std::vector<std::string> &objects);

private:
  struct Impl;
  explicit Compilation(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace deft::driver
