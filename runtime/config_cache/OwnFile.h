#pragma once

#include "runtime/config_cache/ConfigFile.h"

/// What may be done to a file of a device, by whose it is.
namespace deft::config_cache {

support::Trust trustIn(Place place);
/// Of a new file.
unsigned modeIn(Place place);
/// A folder of deftc's own is made private.
support::Result<void> makeFolderOf(const std::string &path, Place place);

/// What a reading of a file says of it.
struct FileFacts {
  FileState state;
  const DeviceKey &device;    ///< of a good one
  const std::string &message; ///< of any other
};

/// What another version or device wrote, nobody can read, or is no file of this format, is not touched.
support::Result<void> checkOwn(const FileFacts &file, const std::string &path, Place place,
                               const DeviceKey &device);

} // namespace deft::config_cache
