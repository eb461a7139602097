#pragma once

#include "compiler/support/Descriptor.h"
#include "compiler/support/Result.h"

#include <cstddef>
#include <string>
#include <sys/stat.h>

/// The only functions that open files for reading. They read only regular files: a pipe in place of a file
/// would wait for a writer, and a device might never end.
namespace deft::support {

/// For readers without a limit of their own.
inline constexpr std::size_t kMostFileBytes = std::size_t{1} << 32;

enum class Links { Followed, Refused };

struct OpenedFile {
  Descriptor file{-1};
  struct stat info{};
  std::string fault;     ///< why it is not open; empty: it is open
  bool isAbsent = false; ///< it is not open because it does not exist
};

/// Opens a regular file by name in an open folder, or by path with AT_FDCWD. `Links` applies to the last part
/// of the path, not to the folders before it.
OpenedFile openRegular(int folder, const char *name, Links links);

/// Opens a file that the user named: a regular file, or any input that is already open, by the names of
/// shells and systems (`/dev/stdin`, `/dev/fd/3`, the result of `<(command)`), since somebody opened it on
/// purpose.
OpenedFile openNamed(const std::string &path);

/// Reads the rest of an open file; an error if that is more than `maxBytes`.
Result<std::string> readOpened(int file, const std::string &path, std::size_t maxBytes);

/// The first bytes of a regular file, to find its type; fewer if it is shorter, none if not regular.
std::string beginningOf(const std::string &path, std::size_t bytes, Links links = Links::Followed);

} // namespace deft::support
