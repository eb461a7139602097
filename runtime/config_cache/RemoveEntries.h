#pragma once

#include "compiler/support/AtomicFile.h"
#include "runtime/config_cache/ConfigFile.h"
#include "runtime/config_cache/FileLock.h"

#include <string>
#include <vector>

namespace deft::config_cache {

/// Removes the unwanted entries from a device's file of configs or of sparse layers, and returns their
/// number. A file that does not exist has none; a file that cannot be read does not change.
template <class Read, class Format, class IsUnwanted>
support::Result<int> removeFrom(const std::string &path, Read &&read, Format &&format,
                                IsUnwanted &&isUnwanted) {
  const auto lock = FileLock::ofFile(path);
  if (!lock)
    return lock.error();
  auto reading = read(path);
  if (reading.state == FileState::Absent)
    return 0;
  if (reading.state != FileState::Good)
    return support::Error{support::ErrorCode::Environment, reading.message + "; it is left as it is", ""};
  const auto removed = static_cast<int>(std::erase_if(reading.file.entries, isUnwanted));
  if (removed == 0)
    return 0;
  if (auto written = support::writeFileAtomically(path, format(reading.file)); !written)
    return written.error();
  return removed;
}

} // namespace deft::config_cache
