#pragma once

#include "compiler/target/KernelResources.h"

#include <string_view>
#include <vector>

namespace deft::nvrtc {

using target::KernelResources;

/// Reads the log of a compilation with `--ptxas-options=-v`; one value an entry, in the log's order.
/// A cubin itself tells registers and stack but not whether the stack holds spills, so the log is the
/// better witness. Entries whose lines are not understood are left out, never guessed.
std::vector<KernelResources> parseResources(std::string_view log);

} // namespace deft::nvrtc
