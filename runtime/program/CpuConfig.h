#pragma once

#include "compiler/config/Config.h"
#include "compiler/spec/Variant.h"
#include "compiler/support/Result.h"

namespace deft::program {

/// The config for plans on this machine's processors: the spec's schedule, else partition `auto`, with the
/// shipped prices for this number of threads. If this machine was calibrated, ConfigChooser replaces these by
/// its own prices.
support::Result<config::Config> cpuConfig(const spec::Variant &variant, int threads);

} // namespace deft::program
