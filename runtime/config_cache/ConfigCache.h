#pragma once

#include "compiler/config/Config.h"
#include "compiler/config/DevicePrices.h"
#include "compiler/support/Result.h"
#include "runtime/config_cache/ConfigFile.h"
#include "runtime/config_cache/SparseTuning.h"

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// Loads the configs that a variant may get for a tree on a device.
namespace deft::config_cache {

/// The origin of an entry, the strongest first.
enum class Origin {
  Override,  ///< --config FILE, DEFT_CONFIG_PATH
  User,      ///< found by `deftc tune` on this machine
  Installed, ///< shipped with deftc
};
std::string originName(Origin origin);

/// The places of files. An empty path means that there are none of that kind.
struct Places {
  std::string overridePath;    ///< a file of configs, a folder of such files, or a file with one config
  std::string userFolder;      ///< one file for each device, DeviceKey::fileName()
  std::string installedFolder; ///< one file for each device, likewise
  /// One file of prices for each device, with the same names, from `deftc tune --calibrate`. The program
  /// contains the shipped ones.
  std::string userPrices = {};
  /// Entries for sparse layers, likewise; the installed ones are next to installedFolder.
  std::string userSparse = {}, installedSparse = {};
};

/// DEFT_CONFIG_PATH; the folders `configs`, `prices` and `sparse` of the cache (DEFT_CACHE_DIR,
/// XDG_CACHE_HOME/deftc, HOME/.cache/deftc); share/deftc/configs and sparse next to the program or library
/// that contains this code. An `overridePath` replaces the variable.
Places defaultPlaces(const std::string &overridePath = {});

/// An error if a file that the user named as the override is faulty; loading would skip it with a note.
support::Result<void> checkOverride(const std::string &path);

/// Reads a file with a single config, which is one form of an override.
support::Result<config::Config> readConfig(const std::string &path, DeviceKey::Kind device);

struct FoundFile {
  Origin origin = Origin::User;
  std::string path;
  FileReading reading;
};

/// All files of configs, for any device, sorted by origin and path. Other files of the folders are skipped,
/// but damaged files of configs are included. If the user's folder is not to be trusted, it stands for all
/// files in it.
std::vector<FoundFile> findFiles(const Places &places);

struct LoadedEntry {
  Entry entry;
  DeviceKey device;
  Origin origin = Origin::User;
  std::string path; ///< of the file
};

/// The entries of all files for one device: its own, and those of its siblings. A value. Loading never fails,
/// because a machine without files is fine; notes() lists the faults of files.
class ConfigCache {
public:
  /// Contains nothing.
  ConfigCache() = default;
  /// `hasSparse` also loads entries for sparse layers, for variants that select.
  static ConfigCache load(const Places &places, const DeviceKey &device, bool hasSparse = false);

  const DeviceKey &device() const { return device_; }
  /// Sorted by origin, path and key; a key may occur several times.
  const std::vector<LoadedEntry> &entries() const { return entries_; }
  /// From an override file with a single config.
  const std::optional<config::Config> &fixedConfig() const { return fixed_; }
  const std::string &fixedPath() const { return fixedPath_; }
  const std::vector<std::string> &notes() const { return notes_; }
  /// The prices for choices without entries, and for plans on the device; none: nothing was loaded.
  const std::optional<config::DevicePrices> &prices() const { return prices_; }

  /// For layers that read lists of tokens; empty unless requested.
  const SparseTuning &sparse() const { return sparse_; }

  /// A copy without entries: it gives the untuned choices by this device's prices.
  ConfigCache withoutEntries() const;
  /// A copy without one entry: it gives the choices as if that had never been tuned.
  ConfigCache without(const LoadedEntry &entry) const;
  /// Puts this config before all others; `from` names its origin.
  void fix(config::Config config, std::string from) {
    fixed_ = std::move(config);
    fixedPath_ = std::move(from);
  }
  void add(LoadedEntry entry) { entries_.push_back(std::move(entry)); }

private:
  void addFile(FoundFile found);

  DeviceKey device_;
  std::optional<config::DevicePrices> prices_;
  std::vector<LoadedEntry> entries_;
  SparseTuning sparse_;
  std::optional<config::Config> fixed_;
  std::string fixedPath_;
  std::vector<std::string> notes_;
};

} // namespace deft::config_cache
