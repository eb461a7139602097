#pragma once

#include <string>

namespace deft::test {

/// The command as it was typed, but without quotes: for records.
inline std::string commandLine(int argc, const char *const *argv) {
  std::string line;
  for (int i = 0; i < argc; ++i)
    line += (i > 0 ? " " : "") + std::string(argv[i]);
  return line;
}

} // namespace deft::test
