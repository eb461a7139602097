#pragma once

#include "compiler/support/Result.h"

namespace CLI {
class App;
class ParseError;
} // namespace CLI

namespace deft::cli {

/// Turns an error of the option parser into one of ours: it names the command, the missing or excess
/// argument, the nearest value of a list, and the help to read.
support::Error usageError(const CLI::App &app, const CLI::ParseError &error);

} // namespace deft::cli
