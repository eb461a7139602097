#include "compiler/codegen/cuda/Instantiate.h"
#include "compiler/kernels/DefaultConfig.h"
#include "compiler/kernels/Legality.h"
#include "compiler/support/NearestName.h"
#include "runtime/config_cache/ConfigCache.h"
#include "runtime/nvrtc/Nvrtc.h"
#include "runtime/program/Compiler.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/emit/Disassemble.h"
#include "tools/deftc/emit/Emitters.h"

#include <CLI/CLI.hpp>

namespace deft::cli {
namespace {

using support::Error;
using support::ErrorCode;
using support::Result;

struct CudaOptions {
  std::string arch = "sm_90a";
  std::string kernels; ///< which of the default configs; empty: the first
  std::string phase;   ///< empty: the first
  std::string config;  ///< a file; empty: the default config
};

/// Names the default config by what tells it from the others.
Result<config::Config> namedDefault(const spec::Variant &variant, const target::Target &target,
                                    const std::string &name) {
  const auto configs = kernels::defaultConfigs(variant, &target);
  if (!configs)
    return configs.error();
  std::vector<std::string> names;
  std::string list;
  for (const config::Config &config : *configs) {
    names.push_back(defaultName(config));
    list += (list.empty() ? "" : ", ") + names.back();
    if (names.back() == name)
      return config;
  }
  const std::string nearest = support::didYouMean(name, names);
  return Error{ErrorCode::Usage,
               "`" + variant.name + "` has no default kernels `" + name + "` on " + std::string(target.arch),
               nearest.empty() ? "it has " + list : nearest};
}

Result<config::Config> configOf(const spec::Variant &variant, const target::Target &target,
                                const CudaOptions &options) {
  if (options.config.empty() && options.kernels.empty())
    return kernels::defaultConfig(variant, &target);
  if (options.config.empty())
    return namedDefault(variant, target, options.kernels);
  Result<config::Config> config = config_cache::readConfig(options.config, config::DeviceKind::Gpu);
  if (config)
    if (auto checked = kernels::checkConfig(kernels::KernelShape::of(variant), *config, &target); !checked)
      return checked.error();
  return config;
}

Result<codegen::cuda::KernelText> instantiate(const LoadedSpec &spec, const spec::Variant &variant,
                                              const CudaOptions &options) {
  const target::Target *target = target::findTarget(options.arch);
  if (!target) {
    const auto near = target::suggestTarget(options.arch);
    return Error{ErrorCode::Usage, "unknown architecture `" + options.arch + "`",
                 near ? "did you mean `" + *near + "`?" : "it is one of " + target::targetNames()};
  }
  Result<codegen::cuda::VariantSource> source = program::variantSource(spec, variant);
  if (!source)
    return std::move(source).error();
  return codegen::cuda::instantiateNamed(*source, configOf(variant, *target, options), *target,
                                         options.phase);
}

Result<nvrtc::Compiled> compile(const LoadedSpec &spec, const spec::Variant &variant,
                                const CudaOptions &options, bool ptx) {
  const Result<codegen::cuda::KernelText> kernel = instantiate(spec, variant, options);
  if (!kernel)
    return kernel.error();
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    return nvrtc.error();
  return (*nvrtc)->compile(kernel->entry + ".cu", kernel->text, options.arch,
                           {.lineInfo = false, .ptx = ptx});
}

} // namespace

void addCudaEmitters(CLI::App &emit, EmitterTable &table) {
  auto options = std::make_shared<CudaOptions>();
  CLI::Option *arch =
      emit.add_option("--arch", options->arch, "For cuda, ptx, cubin and sass: the GPU architecture")
          ->capture_default_str();
  CLI::Option *phase =
      emit.add_option("--phase", options->phase,
                      "For cuda, ptx, cubin and sass: the kernel; a phase of the schedule (default: the "
                      "first), merge, queries (with a hook `query`), or with `select` PHASE_selecting, "
                      "select, sparse, unite or united. Kernels have the untuned config");
  CLI::Option *config =
      emit.add_option("--config", options->config,
                      "For cuda, ptx, cubin and sass: a file with a config, in place of the default one");
  CLI::Option *which = emit.add_option("--kernel", options->kernels,
                                       "For cuda, ptx, cubin and sass: one of the default configs, by its "
                                       "rows (rows_128, rows_64, rows_64_dealt); a wrong name lists them")
                           ->excludes(config);
  for (CLI::Option *const option : {arch, phase, config, which})
    table.options.push_back({option, {"cuda", "ptx", "cubin", "sass"}});
  table.configFile = [options] { return options->config; };
  table.add({"cuda", "the CUDA source of a kernel",
             [options](const LoadedSpec &spec, const spec::Variant &variant) -> Result<std::string> {
               Result<codegen::cuda::KernelText> kernel = instantiate(spec, variant, *options);
               if (!kernel)
                 return std::move(kernel).error();
               return kernel->text;
             }});
  table.add({"ptx", "its PTX",
             [options](const LoadedSpec &spec, const spec::Variant &variant) -> Result<std::string> {
               auto compiled = compile(spec, variant, *options, /*ptx=*/true);
               if (!compiled)
                 return std::move(compiled).error();
               return compiled->ptx;
             }});
  EmitKind cubin{"cubin", "its machine code, an ELF file",
                 [options](const LoadedSpec &spec, const spec::Variant &variant) -> Result<std::string> {
                   auto compiled = compile(spec, variant, *options, /*ptx=*/false);
                   if (!compiled)
                     return std::move(compiled).error();
                   return compiled->cubin;
                 }};
  cubin.binary = true;
  table.add(std::move(cubin));
  table.add({"sass", "its machine code as text, by nvdisasm of the CUDA toolkit",
             [options](const LoadedSpec &spec, const spec::Variant &variant) -> Result<std::string> {
               const auto program = findDisassembler(); // before a minute of compiling
               if (!program)
                 return program.error();
               auto compiled = compile(spec, variant, *options, /*ptx=*/false);
               if (!compiled)
                 return std::move(compiled).error();
               return disassemble(*program, compiled->cubin);
             }});
}

} // namespace deft::cli
