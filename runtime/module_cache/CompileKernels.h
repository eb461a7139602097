#pragma once

#include "compiler/codegen/cuda/VariantSource.h"
#include "compiler/config/Config.h"
#include "compiler/package/KernelSet.h"
#include "compiler/support/Result.h"
#include "compiler/target/Target.h"
#include "runtime/module_cache/CubinCache.h"
#include "runtime/nvrtc/Nvrtc.h"

#include <string>
#include <string_view>

/// Turns a variant's source into kernels, with NVRTC and the cubin cache.
namespace deft::module_cache {

/// One kernel from its source: from the cache, or compiled and stored. `entry` is its function, and names the
/// source in messages. `cache` may be null.
support::Result<package::Kernel> compileKernel(CubinCache *cache, const nvrtc::Nvrtc &nvrtc,
                                               const std::string &entry, const std::string &source,
                                               std::string_view arch,
                                               const nvrtc::CompileOptions &options = {});

/// All kernels of a config's full attention; those that are not in the cache compile in parallel. A config
/// that is not legal on the target is an error before anything is compiled.
support::Result<package::KernelSet> compileKernels(CubinCache *cache, const nvrtc::Nvrtc &nvrtc,
                                                   const codegen::cuda::VariantSource &source,
                                                   const config::Config &config, const target::Target &target,
                                                   const nvrtc::CompileOptions &options = {});

/// For a variant that selects, also the kernels of its two other attentions. `sparse`, one of
/// kernels::sparsePhases(), is the shape of the kernel that reads lists; none: kernels::sparsePhase().
support::Result<package::KernelSet> compileLayers(CubinCache *cache, const nvrtc::Nvrtc &nvrtc,
                                                  const codegen::cuda::VariantSource &source,
                                                  const config::Config &config, const target::Target &target,
                                                  const nvrtc::CompileOptions &options = {},
                                                  const config::PhaseConfig *sparse = nullptr);

/// The kernel of this shape that reads lists.
support::Result<package::Kernel> compileSparse(CubinCache *cache, const nvrtc::Nvrtc &nvrtc,
                                               const codegen::cuda::VariantSource &source,
                                               const config::PhaseConfig &phase, const target::Target &target,
                                               const nvrtc::CompileOptions &options = {});

} // namespace deft::module_cache
