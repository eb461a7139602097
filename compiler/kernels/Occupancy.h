#pragma once

#include "compiler/kernels/Family.h"

namespace deft::kernels {

/// Blocks of a phase that run at a time on one multiprocessor, estimated without a compiler; of a CPU's
/// thread, one.
int blocksPerSm(const PhaseSite &site);
inline int blocksPerSm(const KernelShape &shape, const PhaseConfig &phase, const target::Target *target,
                       Families all = families()) {
  return blocksPerSm({shape, phase, target, familyOf(phase, all)});
}
/// The blocks for plan::makePlan before a kernel is loaded: of the phase that runs fewest. `units`: a GPU's
/// multiprocessors, or threads.
int estimateBlocks(const KernelShape &shape, const config::Config &config, const target::Target *target,
                   int units, Families all = families());

/// Of a launch, at most, on a device that runs so many at a time.
inline int mostBlocks(const PhaseConfig &phase, int blocksAtOnce, Families all = families()) {
  return familyOf(phase, all).mostWaves * blocksAtOnce;
}

} // namespace deft::kernels
