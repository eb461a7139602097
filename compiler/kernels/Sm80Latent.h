#pragma once

#include "compiler/kernels/Family.h"

namespace deft::kernels {

/// What a block of the family shares out to its warps, and a thread keeps in registers. Twin:
/// templates/deft/sm80_latent/shares.cuh.
struct LatentShares {
  int sharers = 1;      ///< warps of the same 16 rows
  int sumRegisters = 0; ///< of a thread
  int stepsHeld = 0;    ///< of 16 dims of q, in registers
  int dimsWaiting = 0;  ///< of q, in shared memory
};
LatentShares latentShares(const KernelShape &shape, const PhaseConfig &phase);

/// Shapes of the kernel that reads lists which a caller hands over, the preferred ones first: of an item's
/// few rows, with deep rings, since its tokens lie anywhere.
std::vector<PhaseConfig> sm80LatentSparse(const KernelShape &shape, const target::Target &target);

/// A phase for items of few rows beside one of other families or of this one, with what the tuner tries.
TunedPhase sm80LatentNarrow(const KernelShape &shape);

} // namespace deft::kernels
