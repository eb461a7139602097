#pragma once

#include "compiler/kernels/Family.h"

namespace deft::kernels {

/// How a block of the family divides work among its warps, and the registers that a thread needs. Twin:
/// templates/deft/sm80_latent/shares.cuh.
struct LatentShares {
  int sharers = 1;      ///< warps that work on the same 16 rows
  int sumRegisters = 0; ///< of a thread
  int stepsHeld = 0;    ///< of 16 dims of q, in registers
  int dimsWaiting = 0;  ///< of q, in shared memory
};
LatentShares latentShares(const KernelShape &shape, const PhaseConfig &phase);

/// Shapes of the kernel that reads lists given by a caller, preferred ones first: for the few rows of an
/// item, with deep rings, since its tokens lie anywhere.
std::vector<PhaseConfig> sm80LatentSparse(const KernelShape &shape, const target::Target &target);

/// A phase for items of few rows, next to phases of any family, with the values that the tuner tries.
TunedPhase sm80LatentNarrow(const KernelShape &shape);

} // namespace deft::kernels
