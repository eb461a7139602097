#pragma once

#include <cstdint>

namespace deft::support {

/// A stretch of a source file, in bytes. `file` is an index into a SourceManager; the manager turns
/// offsets into lines and columns, both counted from 1.
struct SourceRange {
  std::uint32_t file = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

} // namespace deft::support
