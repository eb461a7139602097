#pragma once

#include "compiler/support/Result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The file format of packages: named byte strings in one file, each with its checksum.
///
///   8 bytes   magic "DEFTPKG\n"
///   u32       format version, little endian
///   u32       bytes of the table
///   32 bytes  SHA-256 of the table
///   table     JSON: [{"name", "size", "sha256"}, ...]
///   sections  in the table's order, of at most 2^32 bytes each, nothing between them and nothing after them
namespace deft::package {

inline constexpr std::uint32_t kContainerVersion = 3; ///< raised when the contents of sections change

struct Section {
  std::string name;
  std::string bytes;
};

/// Deterministic. Names must differ.
std::string writeContainer(const std::vector<Section> &sections);

/// Checks everything before it returns anything. `path` is for messages. The errors distinguish truncated,
/// altered, newer and foreign files.
support::Result<std::vector<Section>> readContainer(std::string_view bytes, const std::string &path);

/// Whether a file with this beginning is meant to be a package; it may still be damaged.
bool looksLikePackage(std::string_view bytes);

} // namespace deft::package
