#pragma once

#include "compiler/kernels/Family.h"

namespace deft::kernels {

/// An estimate, without a compiler, of the blocks of a phase that one multiprocessor runs at a time. A CPU's
/// thread runs one.
int blocksPerSm(const PhaseSite &site);
inline int blocksPerSm(const KernelShape &shape, const PhaseConfig &phase, const target::Target *target,
                       Families all = families()) {
  return blocksPerSm({shape, phase, target, familyOf(phase, all)});
}
/// The number of blocks for plan::makePlan before kernels are loaded, for the phase that runs the fewest.
/// `units`: multiprocessors of a GPU, or threads.
int estimateBlocks(const KernelShape &shape, const config::Config &config, const target::Target *target,
                   int units, Families all = families());

/// The most blocks of a launch, on a device that runs `blocksAtOnce` at a time.
inline int mostBlocks(const PhaseConfig &phase, int blocksAtOnce, Families all = families()) {
  return familyOf(phase, all).mostWaves * blocksAtOnce;
}

} // namespace deft::kernels
