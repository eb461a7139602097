#pragma once

#include "compiler/support/Result.h"

#include <string>
#include <vector>

namespace CLI {
class App;
class Validator;
} // namespace CLI

namespace deft::cli {

/// A whole number of at least so much that an int holds; CLI11's own say a range of 309 digits.
CLI::Validator atLeast(int least);
CLI::Validator between(int least, int most);
/// Any number from 0.
CLI::Validator notNegative();
/// A whole number of 64 bits.
CLI::Validator seed();
/// How many threads: of more than this nobody gains, and the system may not give them.
CLI::Validator threads();

/// A file that is gone on with later: what goes to the output, `-`, would not be there.
CLI::Validator keptFile();

/// A command or an option that there is not, with the nearest one as a hint. CLI11 would say first what is
/// missing, or print the help of what is there.
support::Result<void> checkNames(const CLI::App &app, const std::vector<std::string> &arguments);

/// As a shell reads it back: between quotes where it has to be.
std::string shellWord(const std::string &argument);

/// `help run` is `run --help`.
std::vector<std::string> withHelpLast(std::vector<std::string> arguments);

} // namespace deft::cli
