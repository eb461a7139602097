#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace deft::fuzz {

/// Ends the process as libFuzzer wants it where the code contradicts itself.
inline void require(bool condition, const std::string &what) {
  if (condition)
    return;
  std::fprintf(stderr, "broken: %s\n", what.c_str());
  std::abort();
}

} // namespace deft::fuzz
