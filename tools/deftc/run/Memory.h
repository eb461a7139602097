#pragma once

#include "compiler/support/Result.h"

#include <limits>
#include <string>

namespace deft::cli {

/// Bytes that a process here can get before the system ends it, of the machine and of its own group;
/// infinity where the system does not say.
double freeMemoryBytes();

/// An error where `bytes`, which `what` is certain to take, are more: asking for them would not fail, but end
/// the process when they are written.
support::Result<void> checkMemory(const std::string &what, double bytes,
                                  double freeBytes = freeMemoryBytes());

} // namespace deft::cli
