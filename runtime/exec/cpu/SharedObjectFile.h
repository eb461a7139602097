#pragma once

#include <string>
#include <string_view>

namespace deft::exec {

/// Why the bytes are no whole shared object for this machine; empty: they are. The system's loader maps what
/// the headers say and lets a process die of a file that is shorter. Native code is trusted beyond that.
std::string faultOfSharedObject(std::string_view bytes);

} // namespace deft::exec
