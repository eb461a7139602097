#pragma once

#include <string_view>

namespace deft::support {

/// Writes all of `bytes`. False: errno says why. A file that would become larger than the process may make
/// one
/// (`ulimit -f`) is such an error, EFBIG, and not the end of the process.
bool writeAll(int file, std::string_view bytes);

} // namespace deft::support
