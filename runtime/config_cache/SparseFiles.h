#pragma once

#include "runtime/config_cache/ConfigCache.h"
#include "runtime/config_cache/SparseTuning.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// Files of what was tuned for sparse layers: one a device, named as its configs are. specs/CONFIGS.md has
/// the format.
namespace deft::config_cache {

inline constexpr char kSparseFormat[] = "deft-sparse"; ///< as a file says it

struct SparseFile {
  DeviceKey device;
  std::vector<SparseEntry> entries;
  std::vector<std::string> kept;  ///< likewise, the JSON of those that this build does not understand
  std::vector<std::string> notes; ///< what is wrong with these
};

struct SparseReading {
  FileState state = FileState::Absent;
  SparseFile file;     ///< of a good one
  std::string message; ///< of any other
};

SparseReading parseSparseFile(std::string_view text, const std::string &path);
/// Waits for nobody and reads no more than support::kMostCachedBytes.
SparseReading readSparseFile(const std::string &path, support::Trust trust = support::Trust::Anyone);
/// Whether it says of itself that it is such a file, whatever else is in it.
bool saysSparse(const std::string &path);
std::string formatSparseFile(const SparseFile &file);

struct FoundSparseFile {
  Origin origin = Origin::User;
  std::string path;
  SparseReading reading;
};

/// All there are, of whatever device: by origin, then path. Of a user's folder that is not to be trusted the
/// folder stands for all that is in it.
std::vector<FoundSparseFile> findSparseFiles(const Places &places);

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

/// At least one file; what is in all of them, by a rule that does not know their order: as saveSparse would
/// have put one entry over the other, those of today's kernels last, then by date, then by text. Devices that
/// differ are an error.
support::Result<SparseFile> mergeSparseFiles(const std::vector<SparseFile> &files);
/// Merges a whole file into the one at `path`, so.
support::Result<WriteReport> mergeIntoSparse(const std::string &path, Place place, const SparseFile &more);
/// Whether that can be expected to work.
support::Result<void> checkSparseMergeable(const std::string &path, Place place, const DeviceKey &device);

/// Takes out the entries that are unwanted, under the file's lock; how many. Those that this build does not
/// understand stay.
support::Result<int> removeSparseEntries(const std::string &path,
                                         const std::function<bool(const SparseEntry &)> &isUnwanted);

} // namespace deft::config_cache
