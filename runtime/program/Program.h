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

/// One variant and where its kernels come from: a spec, compiled now, or a package, compiled before.
/// Immutable; all of it may be called from any thread.
class Program {
public:
  /// Whether the file is meant to be a package.
  static bool isPackage(const std::string &path);

  static support::Result<Program> fromSpec(std::shared_ptr<const LoadedSpec> spec,
                                           const std::string &variantName, const std::string &howToChoose);
  static support::Result<Program> fromPackage(const std::string &path, const std::string &variantName,
                                              const std::string &howToChoose);

  const spec::Variant &variant() const { return *variant_; }
  /// variant(), kept alive by who has it.
  std::shared_ptr<const spec::Variant> sharedVariant() const { return {spec_, variant_}; }

  /// The spec as it was written; of a package, the one that it was built of.
  std::string_view specText() const { return spec_->text(); }

  /// The spec and what it imports, as packages keep them.
  std::vector<package::SpecFile> specFiles() const;

  bool isPackaged() const { return package_ != nullptr; }

  /// The package's native code, else that of the JIT.
  support::Result<exec::CpuKernel> cpuKernel() const;

  /// What kernels are made of: the package's, else what the compiler makes now.
  support::Result<codegen::cuda::VariantSource> source() const;

  /// The dialect after the passes. Of a package, too, which holds its spec.
  support::Result<std::string> irText() const;

  /// The translation unit of one kernel of untunedConfig() for an architecture ("sm_90a"): a phase's, the
  /// first one's where `phase` is empty, or that of "merge".
  support::Result<std::string> cudaText(const std::string &architecture, const std::string &phase) const;

  /// What a GPU of this compute capability runs where nothing was tuned: the config of the kernels that a
  /// package has for it, else the default one.
  support::Result<config::Config> untunedConfig(int major, int minor) const;

  /// The configs among which the tree decides there (config_cache::UntunedChooser), untunedConfig() first:
  /// those of the kernels that a package has for it, else the default ones.
  support::Result<std::vector<config::Config>> untunedConfigs(int major, int minor) const;

  /// The kernels of a config: a package's where it has them; else by NVRTC and the cache of kernels, whose
  /// warning (a folder that cannot be written) goes to `warning`. What is compiled of a variant that selects
  /// reads lists by the tile that `tuned` has for it; null, or where that has none: by the rule's.
  support::Result<package::KernelSet> cudaKernels(int major, int minor, const config::Config &config,
                                                  std::string &warning,
                                                  const config_cache::SparseTuning *tuned = nullptr) const;
  /// The shape of the kernel that reads lists in a package's kernels for it; none: it has no such one.
  std::optional<config::PhaseConfig> packagedSparsePhase(int major, int minor) const;
  /// The kernels of untunedConfig().
  support::Result<package::KernelSet> cudaKernels(int major, int minor, std::string &warning) const;

private:
  const package::PackagedVariant *packaged() const;
  /// All for the best of the architectures that run there.
  std::vector<const package::KernelSet *> packagedKernels(int major, int minor) const;

  std::shared_ptr<const LoadedSpec> spec_; ///< a package's own spec, when it is one
  const spec::Variant *variant_ = nullptr; ///< of spec_
  std::shared_ptr<const package::Package> package_;
};

} // namespace deft::program
