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

/// What commas separate; of an empty text one empty word.
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

/// A text that may hold what strangers wrote, names of files and keys among it, without what a terminal
/// obeys.
inline std::string printable(std::string text) {
  const auto isObeyed = [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == 0x7f; };
  std::replace_if(text.begin(), text.end(), isObeyed, '?');
  return text;
}

} // namespace deft::cli
