#include "compiler/support/SourceManager.h"

#include "compiler/support/Utf8.h"

#include <algorithm>

namespace deft::support {

std::uint32_t SourceManager::add(std::string name, std::string text) {
  File file{std::move(name), std::move(text), {0}};
  for (std::size_t i = 0; i < file.text.size(); ++i)
    if (file.text[i] == '\n')
      file.lineStarts.push_back(static_cast<std::uint32_t>(i + 1));
  files_.push_back(std::move(file));
  return static_cast<std::uint32_t>(files_.size() - 1);
}

std::string_view SourceManager::text(SourceRange range) const {
  std::string_view whole = text(range.file);
  std::size_t begin = std::min<std::size_t>(range.begin, whole.size());
  std::size_t end = std::clamp<std::size_t>(range.end, begin, whole.size());
  return whole.substr(begin, end - begin);
}

std::size_t SourceManager::lineIndex(const File &file, std::uint32_t offset) const {
  auto next = std::upper_bound(file.lineStarts.begin(), file.lineStarts.end(), offset);
  return static_cast<std::size_t>(next - file.lineStarts.begin()) - 1;
}

LineColumn SourceManager::lineColumn(std::uint32_t file, std::uint32_t offset) const {
  const File &f = files_.at(file);
  offset = std::min<std::uint32_t>(offset, static_cast<std::uint32_t>(f.text.size()));
  std::size_t index = lineIndex(f, offset);
  std::uint32_t start = f.lineStarts[index];
  std::string_view before = std::string_view(f.text).substr(start, offset - start);
  return {static_cast<int>(index + 1), static_cast<int>(countCodePoints(before) + 1)};
}

SourceRange SourceManager::lineRange(std::uint32_t file, std::uint32_t offset) const {
  const File &f = files_.at(file);
  offset = std::min<std::uint32_t>(offset, static_cast<std::uint32_t>(f.text.size()));
  std::uint32_t begin = f.lineStarts[lineIndex(f, offset)];
  std::size_t end = f.text.find('\n', begin);
  if (end == std::string::npos)
    end = f.text.size();
  if (end > begin && f.text[end - 1] == '\r')
    --end;
  return {file, begin, static_cast<std::uint32_t>(end)};
}

} // namespace deft::support
