#pragma once

#include "compiler/config/Config.h"
#include "compiler/package/VariantSource.h"
#include "compiler/support/Result.h"
#include "compiler/target/Target.h"
#include "runtime/module_cache/CubinCache.h"
#include "runtime/nvrtc/Nvrtc.h"

#include <string>
#include <vector>

/// The kernels of one variant under one config, ready to be loaded by the driver. They come from
/// NVRTC by way of the cubin cache, or from a package.
namespace deft::module_cache {

struct Kernel {
  std::string entry;  ///< the one `extern "C"` function in the cubin
  std::string cubin;
  int threads = 0;    ///< of a block
  int smemBytes = 0;  ///< dynamic shared memory of a block
  nvrtc::KernelResources resources;
  bool fromCache = false;
};

struct KernelSet {
  std::string arch;           ///< "sm_90a"; see target::runsOn
  config::Config config;
  std::vector<Kernel> attend; ///< one for each phase of the config, in its order
  Kernel merge;               ///< a warp for each (query, head); config::kMergeWarps warps a block
};

/// One kernel from its source: found in the cache, or compiled and stored. `entry` is its function,
/// and names the source in messages. `cache` may be null.
support::Result<Kernel> compileKernel(CubinCache *cache, const nvrtc::Nvrtc &nvrtc, const std::string &entry,
                                      const std::string &source, std::string_view arch);

/// All kernels of a config, those that the cache lacks in parallel. The config must be legal on the
/// target; an illegal one is an error before anything is compiled.
support::Result<KernelSet> compileKernels(CubinCache *cache, const nvrtc::Nvrtc &nvrtc,
                                          const package::VariantSource &source, const config::Config &config,
                                          const target::Target &target);

} // namespace deft::module_cache
