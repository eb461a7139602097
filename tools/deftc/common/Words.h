#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace deft::cli {

inline std::string joined(const std::vector<std::string> &words, const char *between = ", ") {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : between) + word;
  return text;
}

/// The parts between commas; for an empty text, one empty part.
inline std::vector<std::string> splitAtCommas(const std::string &list) {
  std::vector<std::string> words(1);
  for (const char c : list) {
    if (c == ',')
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

/// Replaces control characters in a text from outside, such as names of files and keys, so that it cannot
/// control the terminal.
inline std::string printable(std::string text) {
  const auto isObeyed = [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == 0x7f; };
  std::replace_if(text.begin(), text.end(), isObeyed, '?');
  return text;
}

} // namespace deft::cli
