#pragma once

#include "compiler/package/KernelSet.h"
#include "compiler/package/Package.h"
#include "runtime/exec/cpu/CpuKernel.h"
#include "runtime/program/LoadedSpec.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace deft::config_cache {
class SparseTuning;
}

namespace deft::program {

/// One variant and the source of its kernels: a spec that is compiled now, or a package. Immutable; all
/// threads may call all functions.
class Program {
public:
  /// Whether the file is meant to be a package.
  static bool isPackage(const std::string &path);

  static support::Result<Program> fromSpec(std::shared_ptr<const LoadedSpec> spec,
                                           const std::string &variantName, const std::string &howToChoose);
  static support::Result<Program> fromPackage(const std::string &path, const std::string &variantName,
                                              const std::string &howToChoose);

  const spec::Variant &variant() const { return *variant_; }
  /// variant(), which stays alive as long as the pointer.
  std::shared_ptr<const spec::Variant> sharedVariant() const { return {spec_, variant_}; }

  /// The text of the spec; for a package, of the spec that it was built from.
  std::string_view specText() const { return spec_->text(); }

  /// The spec and its imports, as packages store them.
  std::vector<package::SpecFile> specFiles() const;

  bool isPackaged() const { return package_ != nullptr; }

  /// The native code of the package, else that of the JIT.
  support::Result<exec::CpuKernel> cpuKernel() const;

  /// The text that kernels are made from: the package's, or the compiler's result.
  support::Result<codegen::cuda::VariantSource> source() const;

  /// The dialect after all passes. Works for packages as well, since these contain their spec.
  support::Result<std::string> irText() const;

  /// The translation unit of one kernel of untunedConfig() for an architecture ("sm_90a"): of a phase (empty:
  /// the first) or of "merge".
  support::Result<std::string> cudaText(const std::string &architecture, const std::string &phase) const;

  /// The config of a GPU with this compute capability if nothing was tuned: that of the package's kernels for
  /// it, else the default.
  support::Result<config::Config> untunedConfig(int major, int minor) const;

  /// The configs among which a tree chooses there (config_cache::UntunedChooser), beginning with
  /// untunedConfig(): those of the package's kernels for it, else the default ones.
  support::Result<std::vector<config::Config>> untunedConfigs(int major, int minor) const;

  /// The kernels of a config: the package's if it has them, else from NVRTC and the cache of kernels, whose
  /// warning (a folder that is not writable) goes to `warning`. For a variant that selects, the compiled
  /// kernel that reads lists has the tile of `tuned`; if that is null or has none, the rule's tile.
  support::Result<package::KernelSet> cudaKernels(int major, int minor, const config::Config &config,
                                                  std::string &warning,
                                                  const config_cache::SparseTuning *tuned = nullptr) const;
  /// The shape of the package's kernel that reads lists there; none: it has no such kernel.
  std::optional<config::PhaseConfig> packagedSparsePhase(int major, int minor) const;
  /// The kernels of untunedConfig().
  support::Result<package::KernelSet> cudaKernels(int major, int minor, std::string &warning) const;

private:
  const package::PackagedVariant *packaged() const;
  /// All kernels for the best of the architectures that run there.
  std::vector<const package::KernelSet *> packagedKernels(int major, int minor) const;

  std::shared_ptr<const LoadedSpec> spec_; ///< for a package, the package's own
  const spec::Variant *variant_ = nullptr; ///< of spec_
  std::shared_ptr<const package::Package> package_;
};

} // namespace deft::program
