#pragma once

#include <string>
#include <vector>

namespace deft::test {

/// The ```json blocks of a Markdown text: so every example in a document is tested.
inline std::vector<std::string> jsonBlocks(const std::string &text) {
  const std::string open = "```json\n", close = "\n```";
  std::vector<std::string> blocks;
  for (std::size_t at = 0; (at = text.find(open, at)) != std::string::npos;) {
    at += open.size();
    const std::size_t end = text.find(close, at);
    blocks.push_back(text.substr(at, end - at));
    at = end;
  }
  return blocks;
}

} // namespace deft::test
