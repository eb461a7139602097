#include "tools/deftc/RunInput.h"

#include "compiler/config/DefaultConfig.h"
#include "compiler/package/Container.h"
#include "compiler/package/PackagedSpec.h"
#include "compiler/spec/CompileSpec.h"
#include "compiler/support/Render.h"
#include "runtime/exec/cpu/SharedObject.h"
#include "runtime/module_cache/KernelSet.h"
#include "tools/deftc/Codegen.h"

#include <fstream>
#include <ostream>

namespace deft::cli {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

bool isPackage(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  char head[8] = {};
  return file.read(head, sizeof head) && package::looksLikePackage({head, sizeof head});
}

/// The spec inside a package goes through the front end again: it says what to compute, and reading it
/// costs less than keeping a second form of it right.
Result<std::shared_ptr<LoadedSpec>> loadPackagedSpec(Context &context, const package::Package &package,
                                                     const std::string &path) {
  if (package.specFiles.empty())
    return Error{ErrorCode::Diagnostics, path + ": the package holds no spec", ""};
  auto loaded = std::make_shared<LoadedSpec>();
  loaded->path = path;
  loaded->file = loaded->sources.add(package.specFiles[0].name, package.specFiles[0].text);
  support::DiagnosticSink sink;
  loaded->variants =
      spec::compileSpec(loaded->sources, loaded->file, package::packagedResolver(package.specFiles), sink);
  if (sink.hasErrors()) {
    context.err << support::renderDiagnostics(loaded->sources, sink, {context.errColour});
    return Error{ErrorCode::Diagnostics, path + ": this deftc does not accept the package's spec",
                 "it was built by deftc " + package.deftcVersion};
  }
  // A package may have been built of some of the spec's attentions only.
  std::erase_if(loaded->variants, [&](const spec::Variant &variant) { return !package.find(variant.name); });
  return loaded;
}

} // namespace

Result<RunInput> RunInput::open(Context &context, std::string path, std::string variantName) {
  if (const std::size_t hash = path.rfind('#'); hash != std::string::npos && variantName.empty()) {
    variantName = path.substr(hash + 1);
    path.resize(hash);
  }
  RunInput input;
  if (isPackage(path)) {
    auto package = package::openPackage(path);
    if (!package)
      return package.error();
    input.package_ = std::move(*package);
  }
  auto spec = input.package_ ? loadPackagedSpec(context, *input.package_, path) : loadSpec(context, path);
  if (!spec)
    return spec.error();
  input.spec_ = *spec;
  const auto variant = chooseVariant(*input.spec_, variantName);
  if (!variant)
    return variant.error();
  input.variant_ = *variant;
  return input;
}

const package::PackagedVariant *RunInput::packaged() const {
  return package_ ? package_->find(variant_->name) : nullptr;
}

const package::KernelSet *RunInput::packagedKernels(int major, int minor) const {
  const package::KernelSet *best = nullptr;
  int bestMinor = -1;
  if (const package::PackagedVariant *found = packaged())
    for (const package::KernelSet &kernels : found->kernels) {
      const target::Target *target = target::findTarget(kernels.arch);
      if (target && target::runsOn(*target, major, minor) && target->minor > bestMinor) {
        best = &kernels;
        bestMinor = target->minor;
      }
    }
  return best;
}

Result<package::KernelSet> RunInput::cudaKernels(Context &context, int major, int minor) const {
  if (const package::KernelSet *kernels = packagedKernels(major, minor))
    return *kernels;
  const target::Target *target = target::targetForDevice(major, minor);
  if (!target)
    return Error{ErrorCode::Environment,
                 "no kernels for a GPU of compute capability " + std::to_string(major) + "." +
                     std::to_string(minor),
                 "deftc knows " + target::targetNames()};
  const auto config = config::defaultConfig(*variant_, *target);
  if (!config)
    return config.error();
  const auto source =
      packaged() ? Result<package::VariantSource>(packaged()->source) : variantSource(*spec_, *variant_);
  if (!source)
    return source.error();
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    return nvrtc.error();
  const auto cache = module_cache::CubinCache::openDefault();
  auto kernels = module_cache::compileKernels(cache.get(), **nvrtc, *source, *config, *target);
  if (const auto warning = cache->takeWarning())
    context.err << "warning: " << *warning << '\n';
  return kernels;
}

Result<exec::CpuKernel> RunInput::cpuKernel() const {
  if (!package_)
    return jitCpuKernel(*spec_, *variant_);
  const int level = exec::hostIsaLevel();
  const package::CpuObject *best = nullptr;
  for (const package::CpuObject &object : package_->cpu)
    if (object.isaLevel <= level && (!best || object.isaLevel > best->isaLevel))
      best = &object;
  if (best)
    return exec::loadCpuKernel(best->sharedObject, variant_->name);
  return Error{ErrorCode::Environment, "`" + spec_->path + "` holds no code for this processor",
               package_->cpu.empty() ? "build it with `deftc build --cpu`" : ""};
}

} // namespace deft::cli
