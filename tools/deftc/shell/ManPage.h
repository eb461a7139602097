#pragma once

#include <string>

namespace CLI {
class App;
} // namespace CLI

namespace deft::cli {

/// deftc(1), in the language of man.
std::string manPage(const CLI::App &app, const std::string &version);

} // namespace deft::cli
