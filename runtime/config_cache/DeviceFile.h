#pragma once

#include "compiler/support/GuardedFile.h"
#include "runtime/config_cache/DeviceKey.h"
#include "runtime/config_cache/FileState.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

/// What the files have in common that are kept for a device: their format, its version, the device, entries,
/// and the hashes of the kernels that these are of, each once.
namespace deft::config_cache {

struct FileFormat {
  const char *name; ///< as the file says it
  const char *what; ///< for people: a file of what it is
  int version;
};

struct DeviceFile {
  FileState state = FileState::Absent;
  DeviceKey device;       ///< of a good one
  nlohmann::json entries; ///< likewise: an array
  std::string message;    ///< of any other
};

DeviceFile parseDeviceFile(std::string_view text, const std::string &path, const FileFormat &format);
/// Waits for nobody and reads no more than support::kMostCachedBytes.
DeviceFile readDeviceFile(const std::string &path, support::Trust trust, const FileFormat &format);
std::string formatDeviceFile(const FileFormat &format, const DeviceKey &device, nlohmann::json entries);

/// Paths of a folder's files whose names begin so and end in .json, sorted.
std::vector<std::string> deviceFilesIn(const std::string &folder, const std::string &prefix = {});

} // namespace deft::config_cache
