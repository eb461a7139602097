#pragma once

#include "compiler/kernels/Family.h"

namespace deft::kernels {

/// The family's only shape, as the kernel that reads lists which a caller hands over.
PhaseConfig sm90LatentSparse();

} // namespace deft::kernels
