#pragma once

#include "compiler/support/GuardedFile.h"
#include "runtime/config_cache/DeviceKey.h"
#include "runtime/config_cache/FileState.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

/// The common parts of all files that are kept per device: format, version, device, entries, and the hashes
/// of the kernels that these belong to, each once.
namespace deft::config_cache {

struct FileFormat {
  const char *name; ///< in the file
  const char *what; ///< for people: "a file of ..."
  int version;
};

struct DeviceFile {
  FileState state = FileState::Absent;
  DeviceKey device;       ///< if the state is Good
  nlohmann::json entries; ///< likewise; an array
  std::string message;    ///< otherwise
};

DeviceFile parseDeviceFile(std::string_view text, const std::string &path, const FileFormat &format);
/// Does not wait for locks, and reads at most support::kMostCachedBytes.
DeviceFile readDeviceFile(const std::string &path, support::Trust trust, const FileFormat &format);
std::string formatDeviceFile(const FileFormat &format, const DeviceKey &device, nlohmann::json entries);

/// The paths of a folder's files whose names begin with `prefix` and end in .json, sorted.
std::vector<std::string> deviceFilesIn(const std::string &folder, const std::string &prefix = {});

} // namespace deft::config_cache
