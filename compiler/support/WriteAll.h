#pragma once

#include <string_view>

namespace deft::support {

/// Writes all of `bytes`. False: errno has the reason. If the file would exceed the size
/// limit of the process (`ulimit -f`), this fails with EFBIG instead of ending the
/// process.
bool writeAll(int file, std::string_view bytes);

} // namespace deft::support
