#pragma once

#include "compiler/config/Config.h"
#include "compiler/target/KernelResources.h"

#include <optional>
#include <string>
#include <vector>

namespace deft::package {

/// Where a kernel's machine code came from.
enum class KernelOrigin { Compiled, Cache, Package };

/// One kernel, ready to be loaded by the driver.
struct Kernel {
  std::string entry; ///< the one `extern "C"` function in the cubin
  std::string cubin;
  int threads = 0;   ///< of a block
  int smemBytes = 0; ///< dynamic shared memory of a block
  target::KernelResources resources;
  KernelOrigin origin = KernelOrigin::Compiled;
};

/// The kernels of one variant under one config for one architecture.
struct KernelSet {
  std::string arch; ///< "sm_90a"; see target::runsOn
  config::Config config;
  std::vector<Kernel> attend;  ///< one for each phase of the config, in its order
  std::optional<Kernel> query; ///< that of the hook `query`, where the variant has one: before the others
  Kernel merge;                ///< a block for each (query, head) where these are few, else a warp
};

} // namespace deft::package
