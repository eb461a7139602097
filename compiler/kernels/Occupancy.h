#pragma once

#include "compiler/kernels/Family.h"

namespace deft::kernels {

/// Blocks of a phase that run at a time on one multiprocessor, estimated without a compiler.
int blocksPerSm(const PhaseSite &site);
inline int blocksPerSm(const KernelShape &shape, const PhaseConfig &phase, const target::Target &target,
                       Families all = families()) {
  return blocksPerSm({shape, phase, target, familyOf(phase, all)});
}
/// What plan::makePlan is told before a kernel is loaded: of the phase that runs fewest.
int estimateBlocks(const KernelShape &shape, const config::Config &config, const target::Target &target,
                   int multiprocessors, Families all = families());

} // namespace deft::kernels
