#pragma once

#include "compiler/config/Config.h"
#include "compiler/target/KernelResources.h"

#include <optional>
#include <string>
#include <vector>

namespace deft::package {

/// The origin of a kernel's machine code.
enum class KernelOrigin { Compiled, Cache, Package };

/// One kernel, ready for the driver to load.
struct Kernel {
  std::string entry; ///< the only `extern "C"` function of the cubin
  std::string cubin;
  int threads = 0;   ///< of a block
  int smemBytes = 0; ///< dynamic shared memory of a block
  target::KernelResources resources;
  KernelOrigin origin = KernelOrigin::Compiled;
};

/// The kernels that read the lists of several queries as one.
struct UnitingKernels {
  Kernel unite;         ///< makes unions of lists
  int blocksOfList = 1; ///< as in SelectingKernels, for `unite`
  Kernel attend;        ///< reads them
  config::PhaseConfig phase;
};

/// The kernels of the two other attentions of a variant that selects (specs/LANGUAGE.md, K1). If callers give
/// the lists (K7), there is only `sparse`.
struct SelectingKernels {
  std::vector<Kernel> attend;   ///< also compute the worth of tokens; one for each phase of the config
  std::optional<Kernel> select; ///< makes lists from the worth
  int blocksOfList = 1;         ///< blocks of `select`, a cluster, for each list
  int cachedKeys = 0; ///< for which `select` has shared memory; shorter paths need less. 0: not known
  Kernel sparse;      ///< reads lists
  config::PhaseConfig sparsePhase;
  std::optional<UnitingKernels> uniting; ///< none: each query reads its own lists
};

/// The kernels of one variant under one config for one architecture.
struct KernelSet {
  std::string arch; ///< "sm_90a"; see target::runsOn
  config::Config config;
  std::vector<Kernel> attend;  ///< one for each phase of the config, in its order
  std::optional<Kernel> query; ///< of the hook `query`, if the variant has it; runs before the others
  Kernel merge;                ///< one block for each (query, head) if there are few, else one warp
  std::optional<SelectingKernels> selecting; ///< none: not a variant that selects, or not requested
};

} // namespace deft::package
