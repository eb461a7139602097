#pragma once

#include "runtime/config_cache/ConfigFile.h"

/// The changes that are allowed for a device's file, depending on its owner.
namespace deft::config_cache {

support::Trust trustIn(Owner owner);
/// The mode of a new file.
unsigned modeIn(Owner owner);
/// Creates the folder; a folder of deftc's own becomes private.
support::Result<void> makeFolderOf(const std::string &path, Owner owner);

/// The facts about a file after it was read.
struct FileFacts {
  FileState state;
  const DeviceKey &device;    ///< if the state is Good
  const std::string &message; ///< otherwise
};

/// An error for files that must not change: of another version, device or format, or unreadable ones.
support::Result<void> checkOwn(const FileFacts &file, const std::string &path, Owner owner,
                               const DeviceKey &device);

} // namespace deft::config_cache
