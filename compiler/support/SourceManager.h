#pragma once

#include "compiler/support/Source.h"

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace deft::support {

/// Where a byte lies for a reader: both count from 1. A column is a code point of UTF-8, a tab is one.
struct LineColumn {
  int line = 1;
  int column = 1;
};

/// The texts of one compilation, by index. Texts live as long as the manager and never move, so views
/// into them stay valid while files are added.
class SourceManager {
public:
  /// `name` is what diagnostics print: the path as the user wrote it.
  std::uint32_t add(std::string name, std::string text);

  std::size_t fileCount() const { return files_.size(); }
  const std::string &name(std::uint32_t file) const { return files_.at(file).name; }
  std::string_view text(std::uint32_t file) const { return files_.at(file).text; }
  std::string_view text(SourceRange range) const;

  LineColumn lineColumn(std::uint32_t file, std::uint32_t offset) const;
  /// The bytes of the line that holds `offset`, without its end of line.
  SourceRange lineRange(std::uint32_t file, std::uint32_t offset) const;

private:
  struct File {
    std::string name;
    std::string text;
    std::vector<std::uint32_t> lineStarts;
  };
  std::size_t lineIndex(const File &file, std::uint32_t offset) const;

  std::deque<File> files_;
};

} // namespace deft::support
