#pragma once

#include "compiler/support/GuardedFile.h"
#include "compiler/support/Result.h"
#include "runtime/config_cache/DeviceKey.h"
#include "runtime/config_cache/Entry.h"
#include "runtime/config_cache/FileState.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// A file of configs for one device model. specs/CONFIGS.md describes the format.
namespace deft::config_cache {

inline constexpr char kConfigsFormat[] = "deftc-configs"; ///< in the file
inline constexpr int kFileVersion = 2;

struct ConfigFile {
  DeviceKey device;
  std::vector<Entry> entries; ///< sorted by keyOf, without repeats
  /// The JSON of entries that this build does not understand: it ignores them, but writes them back.
  std::vector<std::string> kept;
  std::vector<std::string> notes; ///< about these entries, and about anything else unexpected
};

struct FileReading {
  FileState state = FileState::Absent;
  ConfigFile file;     ///< if the state is Good
  std::string message; ///< otherwise
};

FileReading parseConfigFile(std::string_view text, const std::string &path);
/// Does not wait for locks, and reads at most support::kMostCachedBytes.
FileReading readConfigFile(const std::string &path, support::Trust trust = support::Trust::Anyone);
std::string formatConfigFile(const ConfigFile &file);

/// Merges the entries of two files by a rule that does not depend on their order. Of two
/// entries with one key the winner has fresher kernels, else a complete search, else the later
/// date, else the shorter time, else the smaller text. Files for different devices are an
/// error.
support::Result<ConfigFile> mergeFiles(const ConfigFile &a, const ConfigFile &b);

struct WriteReport {
  int added = 0, replaced = 0, unchanged = 0;
  int kept = 0;         ///< of the unchanged: from a complete search, while the new one was cut short
  std::string setAside; ///< the copy of a broken file; empty: there was none
};

/// How `mergeWrite` treats an entry whose key already exists.
enum class Conflict {
  Replace, ///< the new one was just measured; but an old complete search wins over a shortened new one
  Merge,   ///< as in mergeFiles
};

/// The owner of a file, which decides about the changes that are allowed.
enum class Owner {
  Deftc, ///< deftc's own: its folder is made private, and a damaged file is set aside
  User,  ///< the user's: an existing file that is not a complete file of configs is not changed
};

/// Puts entries into the file; creates it and its folder if they do not exist. Takes the file's lock, reads
/// the file again, merges, and renames a synced copy over it. So readers see either the old or the new file,
/// and two writers lose nothing. The file keeps its mode. A file of another version or device is an error and
/// does not change.
support::Result<WriteReport> mergeWrite(const std::string &path, Owner owner, const DeviceKey &device,
                                        const std::vector<Entry> &entries,
                                        Conflict conflict = Conflict::Replace);
/// Merges a whole file into the one at `path` by Conflict::Merge, including entries that are not understood.
support::Result<WriteReport> mergeWrite(const std::string &path, Owner owner, const ConfigFile &more);

/// Checks that this will probably succeed, before a long computation of the entries.
support::Result<void> checkMergeable(const std::string &path, Owner owner, const DeviceKey &device);

/// Removes the unwanted entries under the same lock; returns their number. Entries that this build does not
/// understand stay.
support::Result<int> removeEntries(const std::string &path,
                                   const std::function<bool(const Entry &)> &isUnwanted);

} // namespace deft::config_cache
