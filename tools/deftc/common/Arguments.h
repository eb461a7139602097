#pragma once

#include "compiler/support/Result.h"

#include <string>
#include <vector>

namespace CLI {
class App;
class Validator;
} // namespace CLI

namespace deft::cli {

/// A whole number of at least `least` that fits an int. CLI11's own check prints a range with 309 digits.
CLI::Validator atLeast(int least);
CLI::Validator between(int least, int most);
/// Any number from 0.
CLI::Validator notNegative();
/// A whole number of 64 bits.
CLI::Validator seed();
/// A number of threads. Above the limit there is no gain, and the system might not start them.
CLI::Validator threads();

/// A file that a later run continues; the output, `-`, could not be continued.
CLI::Validator keptFile();

/// Checks that all commands and options exist; the error suggests the nearest name. CLI11 would first report
/// missing arguments, or print help.
support::Result<void> checkNames(const CLI::App &app, const std::vector<std::string> &arguments);

/// The argument as a shell would read it back, in quotes if it needs them.
std::string shellWord(const std::string &argument);

/// Turns `help run` into `run --help`.
std::vector<std::string> withHelpLast(std::vector<std::string> arguments);

} // namespace deft::cli
