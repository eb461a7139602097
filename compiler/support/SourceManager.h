#pragma once

#include "compiler/support/Source.h"

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace deft::support {

/// The position of a byte for a reader, counted from 1. A column is a UTF-8 code point; a tab counts as one.
struct LineColumn {
  int line = 1;
  int column = 1;
};

/// The texts of one compilation, by index. A text lives as long as the manager and never moves, so views of
/// it stay valid when files are added.
class SourceManager {
public:
  /// `name` is what diagnostics print: the path as the user wrote it.
  std::uint32_t add(std::string name, std::string text);

  std::size_t fileCount() const { return files_.size(); }
  const std::string &name(std::uint32_t file) const { return files_.at(file).name; }
  std::string_view text(std::uint32_t file) const { return files_.at(file).text; }
  std::string_view text(SourceRange range) const;

  LineColumn lineColumn(std::uint32_t file, std::uint32_t offset) const;
  /// The bytes of the line that contains `offset`, without the end of line.
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
