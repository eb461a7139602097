#pragma once

#include <cstddef>
#include <string_view>

namespace deft::support {

inline bool isUtf8Continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// Bytes of the code point at the beginning of `text`; 0 if there is none: a stray byte, an incomplete one,
/// an overlong form, a surrogate, or a number beyond Unicode.
inline std::size_t codePointBytes(std::string_view text) {
  if (text.empty())
    return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t bytes = first < 0x80   ? 1
                            : first < 0xC2 ? 0
                            : first < 0xE0 ? 2
                            : first < 0xF0 ? 3
                            : first < 0xF5 ? 4
                                           : 0;
  if (bytes > text.size())
    return 0;
  for (std::size_t i = 1; i < bytes; ++i)
    if (!isUtf8Continuation(text[i]))
      return 0;
  const bool isTooLong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool isNone = (first == 0xED && byte(1) >= 0xA0) || (first == 0xF4 && byte(1) >= 0x90);
  return isTooLong || isNone ? 0 : bytes;
}

inline bool isUtf8(std::string_view text) {
  while (const std::size_t bytes = codePointBytes(text))
    text.remove_prefix(bytes);
  return text.empty();
}

/// The number of code points in `text`; a stray continuation byte at the start counts as one.
inline std::size_t countCodePoints(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    count += i == 0 || !isUtf8Continuation(text[i]);
  return count;
}

} // namespace deft::support
