#pragma once

#include "compiler/kernels/Family.h"

namespace deft::kernels {

/// The family's only shape, as the kernel that reads lists which a caller hands over, and as that of unions
/// of these.
PhaseConfig sm90LatentSparse();
PhaseConfig sm90LatentUnited();

} // namespace deft::kernels
