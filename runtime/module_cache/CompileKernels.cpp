#include "runtime/module_cache/CompileKernels.h"

#include "compiler/codegen/cuda/Instantiate.h"
#include "compiler/codegen/cuda/InstantiateSelect.h"
#include "compiler/kernels/BlocksBeside.h"
#include "compiler/kernels/Legality.h"
#include "compiler/kernels/SharedMemory.h"
#include "compiler/kernels/SparsePhase.h"
#include "compiler/support/InOrder.h"
#include "compiler/support/Log.h"
#include "compiler/support/NvtxRange.h"

#include <future>
#include <optional>

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

/// One thread a kernel: NVRTC compiles in parallel, and a config has a handful of kernels.
class Compiling {
public:
  Compiling(CubinCache *cache, const nvrtc::Nvrtc &nvrtc, const target::Target &target,
            const nvrtc::CompileOptions &options, const codegen::cuda::VariantSource &source,
            const config::Config &config)
      : cache_(cache), nvrtc_(nvrtc), target_(target), options_(options), source_(source), config_(config) {}

  using Coming = std::future<Result<Kernel>>;

  Coming start(std::string entry, std::string text) const {
    return std::async(std::launch::async, [this, entry = std::move(entry), text = std::move(text)] {
      return compileKernel(cache_, nvrtc_, entry, text, target_.arch, options_);
    });
  }

  std::vector<Coming> startPhases(codegen::cuda::Layer layer) const {
    std::vector<Coming> coming;
    for (const config::PhaseConfig &phase : config_.phases)
      coming.push_back(
          start(codegen::cuda::attendEntry(source_, phase, layer),
                codegen::cuda::instantiateAttend(source_, phase, config_.order, kernels::families(), layer)));
    return coming;
  }

  Result<void> takePhases(std::vector<Coming> &coming, std::vector<Kernel> &kernels) const {
    for (std::size_t i = 0; i < coming.size(); ++i)
      if (auto taken = takePhase(coming[i], config_.phases[i], kernels.emplace_back()); !taken)
        return taken; // the other futures wait in their destructors
    return {};
  }

  Result<void> takePhase(Coming &coming, const config::PhaseConfig &phase, Kernel &kernel) const {
    return take(coming, 32 * phase.warps, kernels::smemBytes(source_.shape(), phase), kernel);
  }

  static Result<void> take(Coming &coming, int threads, int smemBytes, Kernel &kernel) {
    Result<Kernel> compiled = coming.get();
    if (!compiled)
      return std::move(compiled).error();
    kernel = std::move(*compiled);
    kernel.threads = threads;
    kernel.smemBytes = smemBytes;
    return {};
  }

private:
  CubinCache *cache_;
  const nvrtc::Nvrtc &nvrtc_;
  const target::Target &target_;
  const nvrtc::CompileOptions &options_;
  const codegen::cuda::VariantSource &source_;
  const config::Config &config_;
};

/// The kernels that make unions of lists and read them, while they are compiled.
struct ComingUnions {
  codegen::cuda::UniteShape shape;
  config::PhaseConfig phase;
  Compiling::Coming unite, attend;

  /// None: each query's lists are read by themselves.
  static std::optional<ComingUnions> start(const Compiling &compiling,
                                           const codegen::cuda::VariantSource &source,
                                           const target::Target &target) {
    if (!source.unites())
      return {};
    const auto phase = kernels::unitedPhase(source.shape(), target);
    if (!phase)
      return {};
    constexpr auto kLayer = codegen::cuda::Layer::United;
    const auto shape = codegen::cuda::UniteShape::of(source, target);
    return ComingUnions{
        shape, *phase,
        compiling.start(codegen::cuda::uniteEntry(source), codegen::cuda::instantiateUnite(source, shape)),
        compiling.start(codegen::cuda::attendEntry(source, *phase, kLayer),
                        codegen::cuda::instantiateAttend(source, *phase, config::Order::FromRoot,
                                                         kernels::families(), kLayer))};
  }

  Result<void> take(const Compiling &compiling, package::UnitingKernels &kernels) {
    kernels.blocksOfList = shape.blocksOfList;
    kernels.phase = phase;
    return support::inOrder(
        [&] {
          return Compiling::take(unite, codegen::cuda::UniteShape::kThreads, shape.smemBytes, kernels.unite);
        },
        [&] { return compiling.takePhase(attend, phase, kernels.attend); });
  }
};

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
  if (Result<void> legal = kernels::checkConfig(source.shape(), config, &target); !legal)
    return legal.error();
  const Compiling compiling(cache, nvrtc, target, options, source, config);
  auto attend = compiling.startPhases(codegen::cuda::Layer::Full);
  auto merge = compiling.start(codegen::cuda::mergeEntry(source), codegen::cuda::instantiateMerge(source));
  std::optional<Compiling::Coming> query;
  if (source.has.query)
    query = compiling.start(codegen::cuda::queriesEntry(source), codegen::cuda::instantiateQueries(source));

  KernelSet set;
  set.arch = target.arch;
  set.config = config;
  if (auto taken = compiling.takePhases(attend, set.attend); !taken)
    return taken.error();
  if (query)
    if (auto taken = Compiling::take(*query, 32 * kernels::kQueryWarps, 0, set.query.emplace()); !taken)
      return taken.error();
  if (auto taken = Compiling::take(merge, 32 * kernels::kMergeWarps, 0, set.merge); !taken)
    return taken.error();
  return set;
}

Result<KernelSet> compileLayers(CubinCache *cache, const nvrtc::Nvrtc &nvrtc,
                                const codegen::cuda::VariantSource &source, const config::Config &config,
                                const target::Target &target, const nvrtc::CompileOptions &options,
                                const config::PhaseConfig *sparseShape) {
  auto set = compileKernels(cache, nvrtc, source, config, target, options);
  if (!set || !source.selects())
    return set;
  const auto sparsePhase =
      sparseShape ? Result<config::PhaseConfig>(*sparseShape) : kernels::sparsePhase(source.shape(), target);
  if (!sparsePhase)
    return sparsePhase.error();
  const Compiling compiling(cache, nvrtc, target, options, source, config);
  auto unions = ComingUnions::start(compiling, source, target);
  if (source.listsAreGiven) {
    auto sparse = compileSparse(cache, nvrtc, source, *sparsePhase, target, options);
    if (!sparse)
      return sparse.error();
    package::SelectingKernels &selecting = set->selecting.emplace();
    selecting.sparse = std::move(*sparse);
    selecting.sparsePhase = *sparsePhase;
    if (unions)
      if (auto taken = unions->take(compiling, selecting.uniting.emplace()); !taken)
        return taken.error();
    return set;
  }
  const auto shape = codegen::cuda::SelectShape::of(target);
  auto attend = compiling.startPhases(codegen::cuda::Layer::Selecting);
  auto select =
      compiling.start(codegen::cuda::selectEntry(source), codegen::cuda::instantiateSelect(source, shape));
  auto sparse = std::async(
      std::launch::async, [&] { return compileSparse(cache, nvrtc, source, *sparsePhase, target, options); });

  package::SelectingKernels &selecting = set->selecting.emplace();
  selecting.blocksOfList = shape.blocksOfList;
  selecting.cachedKeys = shape.cachedKeys;
  selecting.sparsePhase = *sparsePhase;
  if (auto taken = compiling.takePhases(attend, selecting.attend); !taken)
    return taken.error();
  if (auto taken = Compiling::take(select, codegen::cuda::SelectShape::kThreads, shape.smemBytes(),
                                   selecting.select.emplace());
      !taken)
    return taken.error();
  auto compiledSparse = sparse.get();
  if (!compiledSparse)
    return compiledSparse.error();
  selecting.sparse = std::move(*compiledSparse);
  if (unions)
    if (auto taken = unions->take(compiling, selecting.uniting.emplace()); !taken)
      return taken.error();
  return set;
}

Result<Kernel> compileSparse(CubinCache *cache, const nvrtc::Nvrtc &nvrtc,
                             const codegen::cuda::VariantSource &source, const config::PhaseConfig &phase,
                             const target::Target &target, const nvrtc::CompileOptions &options) {
  constexpr auto kLayer = codegen::cuda::Layer::Sparse;
  auto kernel = compileKernel(
      cache, nvrtc, codegen::cuda::attendEntry(source, phase, kLayer),
      codegen::cuda::instantiateAttend(source, phase, config::Order::FromRoot, kernels::families(), kLayer),
      target.arch, options);
  if (kernel) {
    kernel->threads = 32 * phase.warps;
    kernel->smemBytes = kernels::smemBytes(source.shape(), phase);
  }
  return kernel;
}

} // namespace deft::module_cache
