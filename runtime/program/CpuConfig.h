#pragma once

#include "compiler/config/Config.h"
#include "compiler/spec/Variant.h"
#include "compiler/support/Result.h"

namespace deft::program {

/// The config by which plans for this machine's processors are made: what the spec's schedule says, else
/// partition `auto`, compared by the prices that ship for so many threads; a ConfigChooser puts those
/// of this very machine in their place, where it was calibrated.
support::Result<config::Config> cpuConfig(const spec::Variant &variant, int threads);

} // namespace deft::program
