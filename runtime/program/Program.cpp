#include "runtime/program/Program.h"

#include "compiler/codegen/cuda/Instantiate.h"
#include "compiler/kernels/DefaultConfig.h"
#include "compiler/package/Container.h"
#include "compiler/package/PackagedSpec.h"
#include "compiler/support/OpenedFile.h"
#include "runtime/config_cache/ConfigChooser.h"
#include "runtime/config_cache/SparseTuning.h"
#include "runtime/exec/Selection.h"
#include "runtime/exec/cpu/SharedObject.h"
#include "runtime/module_cache/CompileKernels.h"
#include "runtime/program/Compiler.h"

#include <optional>

namespace deft::program {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Result<const target::Target *> targetFor(int major, int minor) {
  if (const target::Target *target = target::targetForDevice(major, minor))
    return target;
  return Error{ErrorCode::Environment,
               "no kernels for a GPU of compute capability " + std::to_string(major) + "." +
                   std::to_string(minor),
               "deftc knows " + target::targetNames()};
}

} // namespace

bool Program::isPackage(const std::string &path) {
  constexpr std::size_t kMagicBytes = 8;
  return package::looksLikePackage(support::beginningOf(path, kMagicBytes));
}

Result<Program> Program::fromSpec(std::shared_ptr<const LoadedSpec> spec, const std::string &variantName,
                                  const std::string &howToChoose) {
  const auto variant = chooseVariant(*spec, variantName, howToChoose);
  if (!variant)
    return variant.error();
  Program program;
  program.spec_ = std::move(spec);
  program.variant_ = *variant;
  return program;
}

Result<Program> Program::fromPackage(const std::string &path, const std::string &variantName,
                                     const std::string &howToChoose) {
  auto package = package::openPackage(path);
  if (!package)
    return package.error();
  auto spec = loadPackagedSpec(*package, path);
  if (!spec)
    return spec.error();
  auto program = fromSpec(std::move(*spec), variantName, howToChoose);
  if (program)
    program->package_ = std::make_shared<const package::Package>(std::move(*package));
  return program;
}

std::vector<package::SpecFile> Program::specFiles() const {
  return package::specFilesOf(spec_->sources, spec_->file);
}

const package::PackagedVariant *Program::packaged() const {
  return package_ ? package_->find(variant_->name) : nullptr;
}

std::vector<const package::KernelSet *> Program::packagedKernels(int major, int minor) const {
  std::vector<const package::KernelSet *> best;
  int bestMinor = -1;
  if (const package::PackagedVariant *found = packaged())
    for (const package::KernelSet &kernels : found->kernels) {
      const target::Target *target = target::findTarget(kernels.arch);
      if (!target || !target::runsOn(*target, major, minor) || target->minor < bestMinor)
        continue;
      if (target->minor > bestMinor)
        best.clear();
      best.push_back(&kernels);
      bestMinor = target->minor;
    }
  return best;
}

Result<codegen::cuda::VariantSource> Program::source() const {
  if (!packaged())
    return variantSource(*spec_, *variant_);
  codegen::cuda::VariantSource source = packaged()->source;
  if (variant_->select) { // a package from before GPUs selected says nothing of it
    source.worthGroups = variant_->worthGroups();
    source.lists = variant_->lists();
  }
  return source;
}

Result<std::string> Program::irText() const { return program::irText(*spec_, *variant_); }

Result<std::string> Program::cudaText(const std::string &architecture, const std::string &phase) const {
  const target::Target *target = target::findTarget(architecture);
  if (!target) {
    const auto near = target::suggestTarget(architecture);
    return Error{ErrorCode::Usage, "unknown architecture `" + architecture + "`",
                 near ? "did you mean `" + *near + "`?" : "it is one of " + target::targetNames()};
  }
  const auto source = this->source();
  if (!source)
    return source.error();
  auto kernel =
      codegen::cuda::instantiateNamed(*source, untunedConfig(target->major, target->minor), *target, phase);
  if (!kernel)
    return std::move(kernel).error();
  return std::move(kernel->text);
}

Result<config::Config> Program::untunedConfig(int major, int minor) const {
  auto all = untunedConfigs(major, minor);
  if (!all)
    return all.error();
  return std::move(all->front());
}

Result<std::vector<config::Config>> Program::untunedConfigs(int major, int minor) const {
  std::vector<config::Config> packaged;
  for (const package::KernelSet *kernels : packagedKernels(major, minor))
    packaged.push_back(kernels->config);
  if (!packaged.empty())
    return packaged;
  const auto target = targetFor(major, minor);
  if (!target)
    return target.error();
  return kernels::defaultConfigs(*variant_, *target);
}

std::optional<config::PhaseConfig> Program::packagedSparsePhase(int major, int minor) const {
  for (const package::KernelSet *kernels : packagedKernels(major, minor))
    if (kernels->selecting)
      return kernels->selecting->sparsePhase;
  return {};
}

Result<package::KernelSet> Program::cudaKernels(int major, int minor, std::string &warning) const {
  const auto config = untunedConfig(major, minor);
  if (!config)
    return config.error();
  return cudaKernels(major, minor, *config, warning);
}

Result<package::KernelSet> Program::cudaKernels(int major, int minor, const config::Config &config,
                                                std::string &warning,
                                                const config_cache::SparseTuning *tuned) const {
  const auto packagedFor = [&](auto serves) -> std::optional<package::KernelSet> {
    for (const package::KernelSet *packaged : packagedKernels(major, minor))
      if (serves(packaged->config, config)) {
        package::KernelSet kernels = *packaged;
        kernels.config = config;
        return kernels;
      }
    return {};
  };
  auto shipped = packagedFor(config_cache::haveSameKernels);
  if (shipped && shipped->selecting.has_value() == variant_->select.has_value())
    return std::move(*shipped);
  const auto target = targetFor(major, minor);
  if (!target)
    return target.error();
  const auto source = this->source();
  if (!source)
    return source.error();
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc) {
    if (!shipped)
      shipped = packagedFor(config_cache::haveSameTiles); // not as fast
    if (shipped) // of a package from before GPUs selected, those of the full attention alone
      return std::move(*shipped);
    return nvrtc.error();
  }
  const auto cache = module_cache::CubinCache::openDefault();
  const auto sparse = tuned ? tuned->phaseFor(*variant_, **target) : std::nullopt;
  auto kernels = module_cache::compileLayers(cache.get(), **nvrtc, *source, config, **target, {},
                                             sparse ? &*sparse : nullptr);
  if (const auto found = cache->takeWarning())
    warning = *found;
  return kernels;
}

Result<exec::CpuKernel> Program::cpuKernel() const {
  if (!package_)
    return jitCpuKernel(*spec_, *variant_);
  const int level = exec::hostIsaLevel();
  const package::CpuObject *best = nullptr;
  for (const package::CpuObject &object : package_->cpu)
    if (object.isaLevel <= level && (!best || object.isaLevel > best->isaLevel))
      best = &object;
  if (best)
    return exec::loadCpuKernel(best->sharedObject, *variant_, spec_->path);
  return Error{ErrorCode::Environment, "`" + spec_->path + "` holds no code for this processor",
               package_->cpu.empty() ? "build it with `deftc build --cpu`" : ""};
}

} // namespace deft::program
