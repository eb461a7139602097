#pragma once

#include "compiler/config/Legality.h"

namespace deft::config {

/// Blocks of a phase that run at a time on one multiprocessor, estimated without a compiler.
int blocksPerSm(const KernelShape &shape, const PhaseConfig &phase, const target::Target &target);
/// What plan::makePlan is told before a kernel is loaded: of the phase that runs fewest.
int estimateBlocks(const KernelShape &shape, const Config &config, const target::Target &target,
                   int multiprocessors);

} // namespace deft::config
