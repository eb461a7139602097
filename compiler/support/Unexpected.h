#pragma once

#include "compiler/support/Result.h"

#include <exception>

namespace deft::support {

/// What a boundary that lets no exception through makes of one: memory that is not there and text that is not
/// UTF-8 are the caller's to know; all else is a bug, and its text, another library's, is not for the caller.
Error unexpected(const std::exception &exception);

} // namespace deft::support
