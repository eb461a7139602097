#pragma once

#include <cstddef>
#include <string_view>

namespace deft::support {

inline bool isUtf8Continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// Code points of `text`; a stray continuation byte at the start counts as one.
inline std::size_t countCodePoints(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    count += i == 0 || !isUtf8Continuation(text[i]);
  return count;
}

} // namespace deft::support
