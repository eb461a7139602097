#pragma once

#include "compiler/support/OpenedFile.h"
#include "compiler/support/Result.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace deft::support {

/// Writes a temporary file beside `path`, syncs it and renames it over `path`: a reader sees the old bytes
/// or the new ones, never a part, also when several processes write at once. A file that is there keeps its
/// mode, a link goes on pointing where it does, and what is no file, a pipe or a device, is written into. A
/// new file gets what the caller's mask leaves of `newMode`. After an error no temporary file is left.
Result<void> writeFileAtomically(const std::string &path, std::string_view bytes, unsigned newMode = 0666);

/// Whether that can be expected to work: to be asked before long work for the file.
Result<void> checkWritable(const std::string &path);
/// Likewise, of files in a folder that is made, with its parents, where it is not there.
Result<void> checkWritableFolder(const std::string &folder);

/// The whole of a regular file, or of what is open already, as openNamed() has it. A file above `maxBytes` is
/// an error, not a read.
Result<std::string> readFile(const std::string &path, std::size_t maxBytes = kMostFileBytes);

} // namespace deft::support
