#pragma once

#include <string>
#include <string_view>

namespace deft::exec {

/// Why the bytes are not a complete shared object for this machine; empty: they are. The loader trusts the
/// headers, so a truncated file would kill the process. Other faults of native code are not checked.
std::string faultOfSharedObject(std::string_view bytes);

} // namespace deft::exec
