#include "compiler/kernels/DefaultConfig.h"
#include "compiler/package/PackagedSpec.h"
#include "compiler/support/AtomicFile.h"
#include "compiler/target/Target.h"
#include "runtime/config_cache/SparseFiles.h"
#include "runtime/module_cache/CompileKernels.h"
#include "runtime/program/Compiler.h"
#include "tools/deftc/common/CommandWalk.h"
#include "tools/deftc/common/Commands.h"
#include "tools/deftc/common/Gpus.h"
#include "tools/deftc/common/Progress.h"
#include "tools/deftc/common/SelectText.h"
#include "tools/deftc/common/SpecInput.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iomanip>
#include <optional>
#include <ostream>
#include <sstream>

namespace deft::cli {
namespace {

using support::Error;
using support::ErrorCode;
using support::Result;

struct BuildOptions {
  std::string spec;
  std::vector<std::string> archs;
  bool cpu = false;
  std::string variant;
  std::string output;
  bool sourceOnly = false;
};

Result<std::vector<const target::Target *>> parseArchs(const std::vector<std::string> &names) {
  std::vector<const target::Target *> targets;
  for (const std::string &name : names) {
    const target::Target *target = target::findTarget(name);
    if (!target) {
      const auto near = target::suggestTarget(name);
      return Error{ErrorCode::Usage, "unknown architecture `" + name + "`",
                   near ? "did you mean `" + *near + "`?" : "it is one of " + target::targetNames()};
    }
    if (std::find(targets.begin(), targets.end(), target) == targets.end())
      targets.push_back(target);
  }
  return targets;
}

std::string seconds(std::chrono::steady_clock::time_point start) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(1)
       << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() << " s";
  return text.str();
}

std::string describe(const package::KernelSet &set, const config::Config &config) {
  std::string text;
  bool isCached = set.merge.origin == package::KernelOrigin::Cache;
  for (std::size_t i = 0; i < set.attend.size(); ++i) {
    const package::Kernel &kernel = set.attend[i];
    text += (text.empty() ? "" : ", ") + (set.attend.size() > 1 ? config.phases[i].name + " " : "") +
            std::to_string(kernel.resources.registers) + " registers";
    isCached &= kernel.origin == package::KernelOrigin::Cache;
    if (kernel.resources.spills())
      text += " (spills " + std::to_string(kernel.resources.spillStoreBytes) + " bytes)";
  }
  return text + (isCached ? ", from the cache" : "");
}

/// Everything that goes into a package; prints a line for each part when it is done.
class Builder {
public:
  Builder(Context &context, const LoadedSpec &spec) : context_(context), spec_(spec) {
    package_.deftcVersion = DEFT_VERSION;
    package_.specFiles = package::specFilesOf(spec.sources, spec.file);
  }

  Result<void> addVariant(const spec::Variant &variant, const std::vector<const target::Target *> &targets) {
    Result<codegen::cuda::VariantSource> source = program::variantSource(spec_, variant);
    if (!source)
      return std::move(source).error();
    package::PackagedVariant packaged{std::move(*source), {}};
    context_.out << variant.name << ": source\n";
    for (const target::Target *target : targets) {
      const auto sparse = tunedSparse(variant, *target);
      const auto configs = kernels::defaultConfigs(variant, target);
      if (!configs)
        return Error{configs.error().code,
                     variant.name + ", " + std::string(target->arch) + ": " + configs.error().message,
                     configs.error().hint};
      for (const config::Config &config : *configs) {
        const auto start = std::chrono::steady_clock::now();
        const auto compile = [&] {
          const Underway underway(context_,
                                  "compiling " + variant.name + " for " + std::string(target->arch));
          return module_cache::compileLayers(cache_.get(), *nvrtc_, packaged.source, config, *target, {},
                                             sparse ? &*sparse : nullptr);
        };
        auto set = compile();
        if (!set)
          return std::move(set).error();
        context_.out << variant.name << ": " << target->arch << ", ";
        if (configs->size() > 1) // the tree chooses
          context_.out << "items of up to " << config.phases.front().tileQ << " rows, "
                       << (kernels::isDealt(config) ? "tokens dealt to warps, " : "");
        context_.out << describe(*set, config) << ", " << seconds(start) << '\n';
        context_.out.flush();
        packaged.kernels.push_back(std::move(*set));
      }
    }
    package_.variants.push_back(std::move(packaged));
    return {};
  }

  Result<void> loadNvrtc() {
    auto nvrtc = nvrtc::Nvrtc::load();
    if (!nvrtc)
      return std::move(nvrtc).error();
    nvrtc_ = *nvrtc;
    package_.nvrtcVersion = nvrtc_->version().text();
    cache_ = module_cache::CubinCache::openDefault();
    return {};
  }

  Result<void> addCpu(const std::vector<const spec::Variant *> &variants) {
    for (const int level : {3, 4}) {
      const auto start = std::chrono::steady_clock::now();
      const auto compile = [&] {
        const Underway underway(context_, "compiling for x86-64-v" + std::to_string(level));
        return program::cpuSharedObject(spec_, variants, level);
      };
      Result<std::string> object = compile();
      if (!object)
        return std::move(object).error();
      context_.out << "cpu: x86-64-v" << level << ", " << object->size() / 1024 << " KiB, " << seconds(start)
                   << '\n';
      context_.out.flush();
      package_.cpu.push_back({level, std::move(*object)});
    }
    return {};
  }

  void warn() {
    if (cache_)
      if (const auto warning = cache_->takeWarning())
        context_.err << "warning: " << *warning << '\n';
  }

  std::string bytes() const { return package::writePackage(package_); }

private:
  /// The tile of the kernel that reads lists, where it was tuned on a GPU of this machine.
  std::optional<config::PhaseConfig> tunedSparse(const spec::Variant &variant, const target::Target &target) {
    const auto driver = device::Driver::load();
    const auto gpus = variant.select && driver ? findGpus(**driver) : Result<std::vector<FoundGpu>>(Error{});
    if (!gpus)
      return {};
    for (const FoundGpu &gpu : *gpus) {
      if (gpu.target != &target)
        continue;
      const auto found =
          config_cache::findSparse(config_cache::defaultPlaces(), config_cache::DeviceKey::ofGpu(gpu.facts));
      const auto phase = found.tuning.phaseFor(variant, target);
      if (!phase)
        continue;
      context_.out << variant.name << ": " << target.arch << ", sparse layers by " << sparseTileText(*phase)
                   << ", as tuned on " << gpu.facts.name << '\n';
      return phase;
    }
    return {};
  }

  Context &context_;
  const LoadedSpec &spec_;
  package::Package package_;
  std::shared_ptr<const nvrtc::Nvrtc> nvrtc_;
  std::unique_ptr<module_cache::CubinCache> cache_;
};

/// What the package is for: what was asked for, or this machine, and then that is said.
Result<void> choosePurpose(Context &context, BuildOptions &options) {
  if (!options.archs.empty() || options.cpu || options.sourceOnly)
    return {};
  std::string text;
  if (const auto driver = device::Driver::load()) {
    const auto gpus = findGpus(**driver);
    if (!gpus)
      return gpus.error();
    for (const auto &[facts, target] : *gpus) {
      if (!target ||
          std::find(options.archs.begin(), options.archs.end(), target->arch) != options.archs.end())
        continue;
      options.archs.emplace_back(target->arch);
      text += std::string(target->arch) + " (" + facts.name + "), ";
    }
  }
  options.cpu = true;
  context.out << "for this machine: " << text << "cpu; --arch, --cpu or --source chooses\n";
  return {};
}

Result<void> build(Context &context, BuildOptions options) {
  if (Result<void> chosen = choosePurpose(context, options); !chosen)
    return chosen;
  const auto targets = parseArchs(options.archs);
  if (!targets)
    return targets.error();
  std::string file = options.spec, name = options.variant;
  if (Result<void> split = splitName(file, name); !split)
    return split;
  const auto spec = loadSpec(context, file);
  if (!spec)
    return spec.error();
  // Lines that say what is done go to the output, and a text that is piped in has no name.
  if (options.output == "-" || (options.output.empty() && file == "-"))
    return Error{ErrorCode::Usage,
                 options.output == "-" ? "a package cannot be written to standard output"
                                       : "a piped spec has no name for a package",
                 "name a file with -o FILE"};
  const std::string path = !options.output.empty()
                               ? options.output
                               : std::filesystem::path((*spec)->path).stem().string() + ".deftpkg";
  if (Result<void> free = context.files.writes(path); !free)
    return free;
  if (Result<void> writable = support::checkWritable(path); !writable)
    return writable;
  std::vector<const spec::Variant *> variants;
  if (name.empty()) {
    for (const spec::Variant &variant : (*spec)->variants)
      variants.push_back(&variant);
  } else {
    const auto chosen = chooseVariant(**spec, name);
    if (!chosen)
      return chosen.error();
    variants.push_back(*chosen);
  }

  Builder builder(context, **spec);
  if (!targets->empty())
    if (Result<void> loaded = builder.loadNvrtc(); !loaded)
      return loaded;
  for (const spec::Variant *variant : variants)
    if (Result<void> added = builder.addVariant(*variant, *targets); !added)
      return added;
  builder.warn();
  if (options.cpu)
    if (Result<void> added = builder.addCpu(variants); !added)
      return added;

  const std::string bytes = builder.bytes();
  if (Result<void> written = support::writeFileAtomically(path, bytes); !written)
    return written;
  context.out << path << ": " << bytes.size() / 1024 << " KiB\n";
  return {};
}

} // namespace

void addBuildCommand(CLI::App &app, Context &context) {
  CLI::App *command =
      app.add_subcommand("build", "Compile a spec into a package that runs without the compiler");
  auto options = std::make_shared<BuildOptions>();
  command->add_option("SPEC", options->spec, "A file, or the name of a shipped spec")
      ->type_name(kSpecOrFile)
      ->required();
  command->add_option("--arch", options->archs, "GPU architectures to compile for: " + target::targetNames())
      ->delimiter(',');
  command->add_flag("--cpu", options->cpu, "Add native code for x86-64-v3 and x86-64-v4");
  command
      ->add_flag("--source", options->sourceOnly,
                 "Only the source of GPU kernels, to be compiled on the machine that runs the package; no "
                 "code for processors")
      ->excludes("--arch")
      ->excludes("--cpu");
  command->add_option("--variant", options->variant,
                      "Only this attention, as SPEC#NAME does (default: all of the file)");
  command->add_option("-o,--output", options->output, "The package (default: SPEC.deftpkg)");
  command->footer("Example:\n  deftc build llama3_8b --arch sm_80,sm_90a --cpu -o llama3.deftpkg\n"
                  "The default targets are the GPUs and the processor of this machine.\n"
                  "A package holds native code: trust it like a program.");
  context.onRun(command, [&context, options] {
    const Result<void> done = build(context, *options);
    return done ? kExitOk : reportError(context, done.error());
  });
}

} // namespace deft::cli
