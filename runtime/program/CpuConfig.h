#pragma once

#include "compiler/config/Config.h"
#include "compiler/spec/Variant.h"
#include "compiler/support/Result.h"

namespace deft::program {

/// The config by which plans for this machine's processors are made: what the spec's schedule says, else
/// partition `auto`, compared by the prices of a host with so many threads.
support::Result<config::Config> cpuConfig(const spec::Variant &variant, int threads);

} // namespace deft::program
