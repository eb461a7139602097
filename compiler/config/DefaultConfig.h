#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"
#include "compiler/target/Target.h"

namespace deft::config {

/// The config of a variant before anything was measured. What the spec's schedule says is kept; of its
/// tune(...) lists the first combination that is legal on the target is taken, so an error says that
/// none is. What it leaves open follows from the ratio, the head dim and the target's shared memory.
support::Result<Config> defaultConfig(const spec::Variant &variant, const target::Target &target);

/// The configs of a variant among which the tree decides before anything was measured, by the price of its
/// plans: defaultConfig() first, and one of other kernels where the target has two that are the better ones
/// of many trees each (blocks of the sm90 family, wide and light, and light ones that deal tokens to warps)
/// and the spec's schedule does not say which.
support::Result<std::vector<Config>> defaultConfigs(const spec::Variant &variant,
                                                    const target::Target &target);

/// defaultConfig() for no target in particular (the CPU, a plan made before the device is known): for the one
/// with the least shared memory, so legal on all of them; of those on which the spec's schedule is, if not
/// all.
support::Result<Config> defaultConfig(const spec::Variant &variant);

} // namespace deft::config
