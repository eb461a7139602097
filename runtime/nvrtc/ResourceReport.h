#pragma once

#include "compiler/target/KernelResources.h"

#include <string_view>
#include <vector>

namespace deft::nvrtc {

using target::KernelResources;

/// Reads the log of a compilation with `--ptxas-options=-v`; returns one value per entry, in the log's order.
/// A cubin contains registers and stack, but not whether the stack holds spills, so the log is the better
/// source. Entries with unknown lines are left out, never guessed.
std::vector<KernelResources> parseResources(std::string_view log);

} // namespace deft::nvrtc
