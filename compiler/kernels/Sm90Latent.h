#pragma once

#include "compiler/kernels/Family.h"

#include <vector>

namespace deft::kernels {

/// The tiles of kernels that read lists which a caller hands over. The first legal one pads the fewest rows.
std::vector<PhaseConfig> sm90LatentSparse(const KernelShape &shape);
/// The tile of the kernel that reads unions of such lists.
PhaseConfig sm90LatentUnited(const KernelShape &shape);

} // namespace deft::kernels
