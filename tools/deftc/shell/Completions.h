#pragma once

#include <string>

namespace CLI {
class App;
} // namespace CLI

/// What shells and man are told of the command line: read from the parser itself, so that nothing can be
/// missing.
namespace deft::cli {

/// Scripts that complete commands, options, the values that options list, and files.
std::string bashCompletions(const CLI::App &app);
std::string zshCompletions(const CLI::App &app);
std::string fishCompletions(const CLI::App &app);

} // namespace deft::cli
