#pragma once

#include "compiler/kernels/Family.h"

namespace deft::kernels {

/// 32-bit registers of a thread of the sm80 attend kernel, estimated from its fragments (accumulators,
/// scores, queries where they stay in registers) and a rest as large as no shipped spec was seen to need
/// more, so that what passes does not spill. ptxas takes less where less will do.
int estimateRegisters(const KernelShape &shape, const PhaseConfig &phase);

/// A phase for items of few rows, which other families leave to this one, with what the tuner tries.
TunedPhase sm80Narrow(const KernelShape &shape);

} // namespace deft::kernels
