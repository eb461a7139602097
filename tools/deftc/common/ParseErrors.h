#pragma once

#include "compiler/support/Result.h"

namespace CLI {
class App;
class ParseError;
} // namespace CLI

namespace deft::cli {

/// What the option parser found wrong, as an error like any other: which command, what is missing or too
/// much, the nearest value where a value is not one of a list, and where to look.
support::Error usageError(const CLI::App &app, const CLI::ParseError &error);

} // namespace deft::cli
