#pragma once

#include "compiler/support/Descriptor.h"
#include "compiler/support/Result.h"

#include <cstddef>
#include <string>
#include <sys/stat.h>

/// The one way in which files are opened to be read. A pipe in the place of a file would wait for somebody
/// who writes into it, and a device may never end, so only regular files are read.
namespace deft::support {

/// Where the reader has no limit of its own.
inline constexpr std::size_t kMostFileBytes = std::size_t{1} << 32;

enum class Links { Followed, Refused };

struct OpenedFile {
  Descriptor file{-1};
  struct stat info{};
  std::string fault;     ///< why it is not open; empty: it is
  bool isAbsent = false; ///< likewise
};

/// A regular file by its name in an open folder, or by its path with AT_FDCWD. `Links` speaks of the name
/// itself, not of folders on the way to it.
OpenedFile openRegular(int folder, const char *name, Links links);

/// A file that somebody names: a regular one, or what is already open, whatever it is, by the names that
/// shells and systems give it (`/dev/stdin`, `/dev/fd/3`, which `<(command)` makes): it was opened on
/// purpose.
OpenedFile openNamed(const std::string &path);

/// What is left to read of an open file, to its end; an error where that is more than `maxBytes`.
Result<std::string> readOpened(int file, const std::string &path, std::size_t maxBytes);

/// The first bytes of a regular file, to see what it is; fewer where it has no more, none of anything else.
std::string beginningOf(const std::string &path, std::size_t bytes, Links links = Links::Followed);

} // namespace deft::support
