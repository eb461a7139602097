#pragma once

#include "compiler/kernels/Family.h"

namespace deft::kernels {

/// The family's only shape, as the kernel that reads lists which a caller hands over, and as that of unions
/// of these.
PhaseConfig sm90LatentSparse(const KernelShape &shape);
PhaseConfig sm90LatentUnited(const KernelShape &shape);

} // namespace deft::kernels
