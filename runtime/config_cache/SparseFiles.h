#pragma once

#include "runtime/config_cache/ConfigCache.h"
#include "runtime/config_cache/SparseTuning.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// Files of entries for sparse layers: one for each device, with the same name as its file of configs.
/// specs/CONFIGS.md describes the format.
namespace deft::config_cache {

inline constexpr char kSparseFormat[] = "deft-sparse"; ///< in the file

struct SparseFile {
  DeviceKey device;
  std::vector<SparseEntry> entries;
  std::vector<std::string> kept;  ///< the JSON of entries that this build does not understand
  std::vector<std::string> notes; ///< about these
};

struct SparseReading {
  FileState state = FileState::Absent;
  SparseFile file;     ///< if the state is Good
  std::string message; ///< otherwise
};

SparseReading parseSparseFile(std::string_view text, const std::string &path);
/// Does not wait for locks, and reads at most support::kMostCachedBytes.
SparseReading readSparseFile(const std::string &path, support::Trust trust = support::Trust::Anyone);
/// Whether the file claims to be such a file, whatever else it contains.
bool saysSparse(const std::string &path);
std::string formatSparseFile(const SparseFile &file);

struct FoundSparseFile {
  Origin origin = Origin::User;
  std::string path;
  SparseReading reading;
};

/// All files, for any device, sorted by origin and path. If a user's folder is not to be trusted, it stands
/// for all files in it.
std::vector<FoundSparseFile> findSparseFiles(const Places &places);

struct FoundSparse {
  SparseTuning tuning;
  std::vector<std::string> notes; ///< faults of files, which are skipped
};

/// The device's own entries, the user's before the installed ones.
FoundSparse findSparse(const Places &places, const DeviceKey &device);

/// Puts entries into the file, over those with the same key, whose cuts for other numbers of queries stay. Of
/// entries for the same lists, the last chosen one is chosen. Empty `path`: the user's file for this device.
/// Takes the lock, reads the file again and renames a synced copy, as for configs. Returns the path.
support::Result<std::string> saveSparse(const Places &places, const DeviceKey &device,
                                        const std::vector<SparseEntry> &entries,
                                        const std::string &path = {});

/// Merges the entries of at least one file by a rule that does not depend on their order: as if saveSparse
/// had put one entry over the other, those of today's kernels last, then by date, then by text. Files for
/// different devices are an error.
support::Result<SparseFile> mergeSparseFiles(const std::vector<SparseFile> &files);
/// Merges a whole file into the one at `path` by this rule.
support::Result<WriteReport> mergeIntoSparse(const std::string &path, Owner owner, const SparseFile &more);
/// Checks that this will probably succeed.
support::Result<void> checkSparseMergeable(const std::string &path, Owner owner, const DeviceKey &device);

/// Removes the unwanted entries under the file's lock; returns their number. Entries that this build does not
/// understand stay.
support::Result<int> removeSparseEntries(const std::string &path,
                                         const std::function<bool(const SparseEntry &)> &isUnwanted);

} // namespace deft::config_cache
