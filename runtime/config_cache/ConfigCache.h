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

/// Which config a variant gets for a tree on a device.
namespace deft::config_cache {

/// Where entries come from, the strongest first.
enum class Origin {
  Override,  ///< --config FILE, DEFT_CONFIG_PATH
  User,      ///< what `deftc tune` found on this machine
  Installed, ///< what came with deftc
};
std::string originName(Origin origin);

/// Where the files are. Empty: there are none of the kind.
struct Places {
  std::string overridePath;    ///< a file of configs, a folder of such, or a file with one config
  std::string userFolder;      ///< one file for each device, DeviceKey::fileName()
  std::string installedFolder; ///< one file for each device, as the user's has
  /// What `deftc tune --calibrate` found, one file of prices for each device by the same names; those that
  /// ship are in the program.
  std::string userPrices = {};
  /// What was tuned for sparse layers, likewise; the latter beside installedFolder.
  std::string userSparse = {}, installedSparse = {};
};

/// DEFT_CONFIG_PATH; the folders `configs`, `prices` and `sparse` of the cache (DEFT_CACHE_DIR,
/// XDG_CACHE_HOME/deftc, HOME/.cache/deftc); share/deftc/configs and sparse beside the program or library
/// that this code is in. An `overridePath` comes before the variable.
Places defaultPlaces(const std::string &overridePath = {});

/// What is wrong with a file that somebody names as the override; loading would pass over it with a note.
support::Result<void> checkOverride(const std::string &path);

/// A file with one config and nothing else, which an override may be.
support::Result<config::Config> readConfig(const std::string &path, DeviceKey::Kind device);

struct FoundFile {
  Origin origin = Origin::User;
  std::string path;
  FileReading reading;
};

/// All files of configs there are, of whatever device: by origin, then path. Other files of the folders are
/// left out, files that should be ones and are not are in; so is the user's folder, where it is not to be
/// trusted, for all that is in it.
std::vector<FoundFile> findFiles(const Places &places);

struct LoadedEntry {
  Entry entry;
  DeviceKey device;
  Origin origin = Origin::User;
  std::string path; ///< of its file
};

/// The entries of all files that matter to one device: its own, and those of its siblings. A value; loading
/// never fails, since a machine without any file is right too: what was wrong with files is in notes().
class ConfigCache {
public:
  /// Knows nothing.
  ConfigCache() = default;
  /// `hasSparse`: for variants that select, so what was tuned for their sparse layers is read, too.
  static ConfigCache load(const Places &places, const DeviceKey &device, bool hasSparse = false);

  const DeviceKey &device() const { return device_; }
  /// By origin, path and key; the same key may be there several times.
  const std::vector<LoadedEntry> &entries() const { return entries_; }
  /// Of an override file that is one config and nothing else.
  const std::optional<config::Config> &fixedConfig() const { return fixed_; }
  const std::string &fixedPath() const { return fixedPath_; }
  const std::vector<std::string> &notes() const { return notes_; }
  /// By which what nobody tuned is chosen, and planned, on the device; none: nothing was loaded.
  const std::optional<config::DevicePrices> &prices() const { return prices_; }

  /// Of layers that read lists of tokens; nothing where it was not asked for.
  const SparseTuning &sparse() const { return sparse_; }

  /// A copy without any: what is chosen where nothing is tuned, by this device's prices.
  ConfigCache withoutEntries() const;
  /// A copy without one entry: what would be chosen if it had never been tuned.
  ConfigCache without(const LoadedEntry &entry) const;
  /// This config comes before all others; `from` says whose it is.
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
