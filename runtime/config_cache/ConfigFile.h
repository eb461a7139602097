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

/// One file of configs: those of one device model. specs/CONFIGS.md has the format.
namespace deft::config_cache {

inline constexpr char kConfigsFormat[] = "deftc-configs"; ///< as a file says it
inline constexpr int kFileVersion = 2;

struct ConfigFile {
  DeviceKey device;
  std::vector<Entry> entries; ///< by keyOf, each key once
  /// The JSON of entries that this build does not understand: not used, and written back.
  std::vector<std::string> kept;
  std::vector<std::string> notes; ///< what is wrong with them, and what else was strange
};

struct FileReading {
  FileState state = FileState::Absent;
  ConfigFile file;     ///< of a good one
  std::string message; ///< of any other
};

FileReading parseConfigFile(std::string_view text, const std::string &path);
/// Waits for nobody and reads no more than support::kMostCachedBytes.
FileReading readConfigFile(const std::string &path, support::Trust trust = support::Trust::Anyone);
std::string formatConfigFile(const ConfigFile &file);

/// `b`'s entries over `a`'s, by a rule that does not know which of them was called first: of two entries of
/// one key the fresher kernels' win, then the whole search, then the later date, then the shorter time, then
/// the smaller text.
/// Devices that differ are an error.
support::Result<ConfigFile> mergeFiles(const ConfigFile &a, const ConfigFile &b);

struct WriteReport {
  int added = 0, replaced = 0, unchanged = 0;
  int kept = 0;         ///< of unchanged: of a whole search, where the new one was cut short
  std::string setAside; ///< where a broken file was copied to; empty: it was none
};

/// How `mergeWrite` treats an entry whose key is there already.
enum class Conflict {
  Replace, ///< the new one was just measured; one of a whole search stays where the new one was cut short
  Merge,   ///< as mergeFiles
};

/// Whose file it is, and so what may be done to it.
enum class Place {
  Cache, ///< deftc's own: the folder is made private, and a damaged file is set aside
  Named, ///< somebody's: what is there and is no whole file of configs is not touched
};

/// Puts entries into the file, and makes it and its folder where they are not there. Takes the file's lock,
/// reads it again, merges, and renames a synced copy over it: readers see all of the old file or of the new
/// one, and two writers lose nothing. The file keeps its mode. One of another version or device is an error
/// and stays as it is.
support::Result<WriteReport> mergeWrite(const std::string &path, Place place, const DeviceKey &device,
                                        const std::vector<Entry> &entries,
                                        Conflict conflict = Conflict::Replace);
/// Merges a whole file into the one at `path`, by Conflict::Merge, with what is not understood of it.
support::Result<WriteReport> mergeWrite(const std::string &path, Place place, const ConfigFile &more);

/// Whether that can be expected to work: to be asked before long work for the entries.
support::Result<void> checkMergeable(const std::string &path, Place place, const DeviceKey &device);

/// Takes out the entries that are unwanted, under the same lock; how many. Those that this build does not
/// understand stay.
support::Result<int> removeEntries(const std::string &path,
                                   const std::function<bool(const Entry &)> &isUnwanted);

} // namespace deft::config_cache
