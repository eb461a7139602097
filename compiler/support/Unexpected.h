#pragma once

#include "compiler/support/Result.h"

#include <exception>

namespace deft::support {

/// The error that a boundary reports for an exception. Missing memory and text that is not UTF-8 are reported
/// to the caller. Any other exception is a bug; its text, from another library, is not shown.
Error unexpected(const std::exception &exception);

} // namespace deft::support
