#pragma once

#include "compiler/kernels/Family.h"
#include "compiler/support/Result.h"
#include "compiler/target/Target.h"

namespace deft::kernels {

/// The config of a variant without measurements. It keeps the values of the spec's schedule; of tune(...)
/// lists it takes the first combination that is legal on the target, and an error says that there is none.
/// All other values follow from the ratio, the head dim and the target's shared memory. Null target: the
/// CPU.
support::Result<config::Config> defaultConfig(const spec::Variant &variant, const target::Target *target,
                                              Families all = families());

/// The default configs of a variant, among which the prices of a tree's plans decide.
/// defaultConfig() comes first. Others follow if the newest family for the target has several
/// kernels that are each best for many trees (Family::defaults) and the spec's schedule does not
/// decide.
support::Result<std::vector<config::Config>>
defaultConfigs(const spec::Variant &variant, const target::Target *target, Families all = families());

/// defaultConfig() for plans that are made before the device is known: for the GPU with the least shared
/// memory, so it is legal on all GPUs, or on all that allow the spec's schedule.
support::Result<config::Config> defaultConfigOfAnyGpu(const spec::Variant &variant,
                                                      Families all = families());
/// The phases of that config, if the schedule names phases; else none.
support::Result<std::vector<PhaseConfig>>
phasesOfAnyGpu(const KernelShape &shape, std::span<const spec::PhaseSpec> given, Families all = families());

} // namespace deft::kernels
