#pragma once

#include "compiler/support/OpenedFile.h"
#include "compiler/support/Result.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace deft::support {

/// Writes a temporary file next to `path`, syncs it and renames it over `path`: a reader sees the old bytes
/// or the new ones, never a part, even if several processes write at once. An existing file keeps its mode,
/// and a link still points to its target. A pipe or device is written in place. A new file gets `newMode`,
/// reduced by the caller's mask. An error leaves no temporary file.
Result<void> writeFileAtomically(const std::string &path, std::string_view bytes, unsigned newMode = 0666);

/// Checks that a write will probably succeed, before a long computation for the file.
Result<void> checkWritable(const std::string &path);
/// The same for files in a folder; creates the folder and its parents if they do not exist.
Result<void> checkWritableFolder(const std::string &folder);

/// Reads a whole regular file, or an input that is already open (see openNamed()). A file larger than
/// `maxBytes` is an error and is not read.
Result<std::string> readFile(const std::string &path, std::size_t maxBytes = kMostFileBytes);

} // namespace deft::support
