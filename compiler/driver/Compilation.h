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

/// One variant on its way through MLIR. This class is the only entry to that half, so it has no MLIR types.
/// It is cheap to make (a few milliseconds); do not share it between threads. Errors are ErrorCode::Internal,
/// because every variant that passed the front end compiles.
class Compilation {
public:
  /// Imports, verifies and optimises. `sources` is read only during this call.
  static support::Result<Compilation> create(const spec::Variant &variant,
                                             const support::SourceManager &sources);

  Compilation(Compilation &&) noexcept;
  Compilation &operator=(Compilation &&) noexcept;
  ~Compilation();

  enum class Stage { Imported, Optimized };
  std::string irText(Stage stage) const;
  /// The IR after the first run of a pass, by its name in Passes.td; the error lists the existing
  /// names.
  support::Result<std::string> irAfter(const std::string &pass) const;

  support::Result<codegen::cuda::VariantSource> cudaVariantSource() const;

  /// Level 3 or 4: x86-64-v3 or v4; 0: this machine.
  support::Result<std::string> llvmText(int isaLevel = 0) const;
  support::Result<std::string> cpuAsm(int isaLevel = 0) const;
  support::Result<std::string> cpuObject(int isaLevel) const;
  /// Native code for this machine; the returned kernel keeps it alive.
  support::Result<std::shared_ptr<const abi::CpuKernel>> jitCpuKernel() const;

  /// One shared object from several results of cpuObject().
  static support::Result<std::string> linkCpuObjects(const std::vector<std::string> &objects);

private:
  struct Impl;
  explicit Compilation(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace deft::driver
