#include "compiler/support/Numbers.h"

#include <array>
#include <cstdio>

namespace deft::support {

std::string withSeparators(long long value) {
  std::string text = std::to_string(value);
  const int first = value < 0 ? 1 : 0;
  for (int at = static_cast<int>(text.size()) - 3; at > first; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::string counted(long long count, const char *one, const char *many) {
  return withSeparators(count) + " " + (count == 1 ? one : many);
}

std::string rounded(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

std::string significant(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*g", digits, value);
  return text.data();
}

std::string bytesOf(double bytes) {
  return bytes < 1e6   ? rounded(bytes * 1e-3, 1) + " kB"
         : bytes < 1e9 ? rounded(bytes * 1e-6, 1) + " MB"
                       : rounded(bytes * 1e-9, 2) + " GB";
}

} // namespace deft::support
