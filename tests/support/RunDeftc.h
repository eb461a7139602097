#pragma once

#include "tools/deftc/common/Context.h"

#include <sstream>
#include <string>
#include <vector>

/// Calls the command line in the same way as the program.
namespace deft::test {

struct Outcome {
  int code = 0;
  std::string out, err;
};

struct Terminal {
  bool hasColour = false;
  bool isOutput = false;         ///< a terminal reads the output
  std::istream *input = nullptr; ///< the input for `-`
};

inline Outcome runDeftc(std::vector<std::string> arguments, const Terminal &terminal = {}) {
  arguments.insert(arguments.begin(), "deftc");
  std::vector<const char *> argv;
  for (const std::string &argument : arguments)
    argv.push_back(argument.c_str());
  std::ostringstream out, err;
  cli::Context context{out, err, terminal.hasColour, terminal.hasColour, {}, terminal.isOutput};
  context.in = terminal.input;
  const int code = cli::runDeftc(static_cast<int>(argv.size()), argv.data(), context);
  return {code, out.str(), err.str()};
}

} // namespace deft::test
