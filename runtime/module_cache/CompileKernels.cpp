#include "runtime/module_cache/CompileKernels.h"

#include "compiler/codegen/cuda/Instantiate.h"
#include "compiler/kernels/Legality.h"
#include "compiler/kernels/SharedMemory.h"
#include "compiler/support/Log.h"
#include "compiler/support/NvtxRange.h"

#include <future>

namespace deft::module_cache {

using package::Kernel;
using package::KernelOrigin;
using package::KernelSet;
using support::Error;
using support::ErrorCode;
using support::LogKind;
using support::Result;

namespace {

std::string forArch(const std::string &entry, std::string_view arch) {
  return entry + " for " + std::string(arch);
}

} // namespace

Result<Kernel> compileKernel(CubinCache *cache, const nvrtc::Nvrtc &nvrtc, const std::string &entry,
                             const std::string &source, std::string_view arch,
                             const nvrtc::CompileOptions &options) {
  const std::string key = cacheKey(source, arch, nvrtc::compilerOptions(arch, options), nvrtc.version());
  Kernel kernel;
  kernel.entry = entry;
  if (cache) {
    const support::LoggedSpan reading;
    if (auto cached = cache->find(key); cached && cached->resources.entry == entry) {
      reading.end(LogKind::CacheHit, [&] { return forArch(entry, arch); });
      kernel.cubin = std::move(cached->cubin);
      kernel.resources = std::move(cached->resources);
      kernel.origin = KernelOrigin::Cache;
      return kernel;
    }
    reading.end(LogKind::CacheMiss, [&] { return forArch(entry, arch) + ": not in " + cache->folder(); });
  }
  const support::NvtxRange range("deft compile");
  const support::LoggedSpan compiling;
  Result<nvrtc::Compiled> compiled = nvrtc.compile(entry + ".cu", source, arch, options);
  compiling.end(LogKind::Compile, [&] {
    return forArch(entry, arch) + (compiled ? ", by NVRTC" : ", by NVRTC: " + compiled.error().message);
  });
  if (!compiled)
    return std::move(compiled).error();
  if (compiled->resources.size() != 1 || compiled->resources[0].entry != entry)
    return Error{ErrorCode::Internal,
                 "the resource report of `" + entry + "` was not understood:\n" + compiled->log,
                 {}};
  kernel.cubin = std::move(compiled->cubin);
  kernel.resources = compiled->resources[0];
  if (cache)
    cache->store(key, source, {kernel.cubin, kernel.resources});
  return kernel;
}

Result<KernelSet> compileKernels(CubinCache *cache, const nvrtc::Nvrtc &nvrtc,
                                 const codegen::cuda::VariantSource &source, const config::Config &config,
                                 const target::Target &target, const nvrtc::CompileOptions &options) {
  const kernels::KernelShape shape = source.shape();
  if (Result<void> legal = kernels::checkConfig(shape, config, &target); !legal)
    return legal.error();

  // One thread a kernel: NVRTC compiles in parallel, and a config has a handful of kernels.
  const auto start = [&](std::string entry, std::string text) {
    return std::async(std::launch::async,
                      [=, &nvrtc, &target, &options, entry = std::move(entry), text = std::move(text)] {
                        return compileKernel(cache, nvrtc, entry, text, target.arch, options);
                      });
  };
  std::vector<std::future<Result<Kernel>>> attend;
  for (const config::PhaseConfig &phase : config.phases)
    attend.push_back(start(codegen::cuda::attendEntry(source, phase),
                           codegen::cuda::instantiateAttend(source, phase, config.order)));
  auto merge = start(codegen::cuda::mergeEntry(source), codegen::cuda::instantiateMerge(source));
  std::optional<std::future<Result<Kernel>>> query;
  if (source.hasQuery)
    query = start(codegen::cuda::queriesEntry(source), codegen::cuda::instantiateQueries(source));

  KernelSet set;
  set.arch = target.arch;
  set.config = config;
  for (std::size_t i = 0; i < attend.size(); ++i) {
    Result<Kernel> kernel = attend[i].get();
    if (!kernel)
      return std::move(kernel).error(); // the other futures wait in their destructors
    kernel->threads = 32 * config.phases[i].warps;
    kernel->smemBytes = kernels::smemBytes(shape, config.phases[i]);
    set.attend.push_back(std::move(*kernel));
  }
  if (query) {
    Result<Kernel> kernel = query->get();
    if (!kernel)
      return std::move(kernel).error();
    set.query = std::move(*kernel);
    set.query->threads = 32 * kernels::kQueryWarps;
  }
  Result<Kernel> merged = merge.get();
  if (!merged)
    return std::move(merged).error();
  set.merge = std::move(*merged);
  set.merge.threads = 32 * kernels::kMergeWarps;
  return set;
}

} // namespace deft::module_cache
