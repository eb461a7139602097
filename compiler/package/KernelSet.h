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

/// The kernels that read the lists of several queries as one.
struct UnitingKernels {
  Kernel unite;         ///< makes unions of lists
  int blocksOfList = 1; ///< as SelectingKernels', of `unite`
  Kernel attend;        ///< reads them
  config::PhaseConfig phase;
};

/// Of a variant that selects, the kernels of its other two attentions (specs/LANGUAGE.md, K1). Where a caller
/// hands over the lists (K7), only `sparse` is there.
struct SelectingKernels {
  std::vector<Kernel> attend;   ///< that also give what tokens are worth; one for each phase of the config
  std::optional<Kernel> select; ///< makes lists of it
  int blocksOfList = 1;         ///< blocks of `select`, a cluster, for each list
  Kernel sparse;                ///< reads lists
  config::PhaseConfig sparsePhase;
  std::optional<UnitingKernels> uniting; ///< none: each query's lists are read by themselves
};

/// The kernels of one variant under one config for one architecture.
struct KernelSet {
  std::string arch; ///< "sm_90a"; see target::runsOn
  config::Config config;
  std::vector<Kernel> attend;  ///< one for each phase of the config, in its order
  std::optional<Kernel> query; ///< that of the hook `query`, where the variant has one: before the others
  Kernel merge;                ///< a block for each (query, head) where these are few, else a warp
  std::optional<SelectingKernels> selecting; ///< none: it does not select, or nobody asked for them
};

} // namespace deft::package
