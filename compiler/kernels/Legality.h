#pragma once

#include "compiler/kernels/Family.h"
#include "compiler/support/Result.h"

/// Which configs can be compiled and launched. A message names the observed number and the limit.
namespace deft::kernels {

/// The first rule that the phase breaks, of those of every family and its family's own; null: it is legal.
const PhaseRule *brokenRule(const PhaseSite &site);

support::Result<void> checkPhase(const KernelShape &shape, const PhaseConfig &phase,
                                 const target::Target &target, Families all = families());
/// Every phase, and that they are ordered, named apart, and end with one that serves all items.
support::Result<void> checkConfig(const KernelShape &shape, const config::Config &config,
                                  const target::Target &target, Families all = families());

} // namespace deft::kernels
