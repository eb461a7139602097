#include "tuner/session/EntryFile.h"

#include "runtime/config_cache/OwnFile.h"

#include <algorithm>
#include <filesystem>

namespace deft::session {

using config_cache::Entry;
using support::Result;

Result<EntryFile> EntryFile::open(const TuneOptions &options, const config_cache::DeviceKey &device,
                                  config_cache::LegalityCheck isOfSchedule) {
  EntryFile file;
  if (options.shard) // its results become entries when the shards are joined
    return file;
  file.path_ = options.configPath;
  // A named file belongs to the user; without a name, the file is in the cache.
  file.owner_ = options.configPath.empty() ? config_cache::Owner::Deftc : config_cache::Owner::User;
  if (file.path_.empty() && !options.places.userFolder.empty())
    file.path_ = (std::filesystem::path(options.places.userFolder) / device.fileName()).string();
  file.device_ = device;
  file.isOfSchedule_ = std::move(isOfSchedule);
  if (!file.path_.empty())
    if (auto mergeable = config_cache::checkMergeable(file.path_, file.owner_, device); !mergeable)
      return mergeable.error();
  return file;
}

/// Whether the file has an entry outside of this spec's schedule that is no slower than the new one: it then
/// stays, for other specs.
bool EntryFile::isOfAnotherSchedule(const Entry &entry) const {
  if (!isOfSchedule_)
    return false;
  const config_cache::FileReading reading =
      config_cache::readConfigFile(path_, config_cache::trustIn(owner_));
  return std::any_of(reading.file.entries.begin(), reading.file.entries.end(), [&](const Entry &old) {
    return keyOf(old) == keyOf(entry) && !old.keepsDefault &&
           old.provenance.kernelHash == entry.provenance.kernelHash && !isOfSchedule_(old.config) &&
           (entry.keepsDefault || old.measurement.tunedUs <= entry.measurement.tunedUs);
  });
}

std::optional<std::string> EntryFile::add(const Entry &entry) {
  if (path_.empty())
    return std::nullopt;
  if (isOfAnotherSchedule(entry))
    return entry.treeClass.text() + ": an entry of another schedule is no slower and stays";
  unsaved_.push_back(entry);
  const auto written = config_cache::mergeWrite(path_, owner_, device_, unsaved_);
  if (!written) {
    error_ = written.error();
    return std::nullopt;
  }
  error_.reset();
  unsaved_.clear();
  written_.added += written->added;
  written_.replaced += written->replaced;
  written_.unchanged += written->unchanged;
  if (!written->setAside.empty())
    written_.setAside = written->setAside;
  if (written->kept > 0)
    return entry.treeClass.text() + ": an entry of a complete search stays, since this search was cut short";
  return std::nullopt;
}

} // namespace deft::session
