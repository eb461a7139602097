#pragma once

#include "runtime/config_cache/ConfigCache.h"
#include "runtime/config_cache/SparseTuning.h"

#include <string>
#include <string_view>
#include <vector>

/// Files of what was tuned for sparse layers: one a device, named as its configs are. specs/CONFIGS.md has
/// the format.
namespace deft::config_cache {

struct SparseFile {
  DeviceKey device;
  std::vector<SparseEntry> entries;
  std::vector<nlohmann::json>
      kept;                       ///< what this build does not understand of them: not used, and written back
  std::vector<std::string> notes; ///< what is wrong with these
};

struct SparseReading {
  FileState state = FileState::Absent;
  SparseFile file;     ///< of a good one
  std::string message; ///< of any other
};

SparseReading parseSparseFile(std::string_view text, const std::string &path);
std::string formatSparseFile(const SparseFile &file);

struct FoundSparse {
  SparseTuning tuning;
  std::vector<std::string> notes; ///< what was wrong with files, which are passed over
};

/// The device's own, the user's before what is installed.
FoundSparse findSparse(const Places &places, const DeviceKey &device);

/// Puts entries into the file, over those of the same key, whose cuts for other numbers of queries stay; of
/// entries of the same lists the last that is chosen is. Empty `path`: the user's of this device. Takes the
/// file's lock, reads it again and renames a synced copy over it, as with configs. The path.
support::Result<std::string> saveSparse(const Places &places, const DeviceKey &device,
                                        const std::vector<SparseEntry> &entries,
                                        const std::string &path = {});

} // namespace deft::config_cache
