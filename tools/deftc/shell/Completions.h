#pragma once

#include <string>

namespace CLI {
class App;
} // namespace CLI

/// The command line for shells and man: read from the parser itself, so nothing can be
/// missing.
namespace deft::cli {

/// Scripts that complete commands, options, the values that options list, and files.
std::string bashCompletions(const CLI::App &app);
std::string zshCompletions(const CLI::App &app);
std::string fishCompletions(const CLI::App &app);

} // namespace deft::cli
