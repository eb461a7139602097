#pragma once

#include "compiler/kernels/Family.h"

namespace deft::kernels {

/// An estimate of the 32-bit registers of a thread of the sm80 attend kernel: its fragments (accumulators,
/// scores, queries that stay in registers) and a constant that was enough for every shipped spec, so that
/// legal configs do not spill. ptxas uses fewer if it can.
int estimateRegisters(const KernelShape &shape, const PhaseConfig &phase);

/// A phase for items of few rows, which other families also use, with the values that the tuner tries.
TunedPhase sm80Narrow(const KernelShape &shape);

} // namespace deft::kernels
