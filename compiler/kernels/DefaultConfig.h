#pragma once

#include "compiler/kernels/Family.h"
#include "compiler/support/Result.h"
#include "compiler/target/Target.h"

namespace deft::kernels {

/// The config of a variant before anything was measured. What the spec's schedule says is kept; of its
/// tune(...) lists the first combination that is legal on the target is taken, so an error says that
/// none is. What it leaves open follows from the ratio, the head dim and the target's shared memory. No
/// target: the CPU.
support::Result<config::Config> defaultConfig(const spec::Variant &variant, const target::Target *target,
                                              Families all = families());

/// The configs of a variant among which the tree decides before anything was measured, by the price of its
/// plans: defaultConfig() first, and those of other kernels where the newest family that serves the target
/// has several that are the better ones of many trees each (Family::defaults) and the spec's schedule does
/// not say which.
support::Result<std::vector<config::Config>>
defaultConfigs(const spec::Variant &variant, const target::Target *target, Families all = families());

/// defaultConfig() for no GPU in particular, as of a plan made before the device is known: for the one with
/// the least shared memory, so legal on all of them; of those on which the spec's schedule is, if not all.
support::Result<config::Config> defaultConfigOfAnyGpu(const spec::Variant &variant,
                                                      Families all = families());
/// The phases of that one, where a schedule names these, or none.
support::Result<std::vector<PhaseConfig>>
phasesOfAnyGpu(const KernelShape &shape, std::span<const spec::PhaseSpec> given, Families all = families());

} // namespace deft::kernels
