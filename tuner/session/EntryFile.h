#pragma once

#include "tuner/session/Tune.h"

#include <optional>
#include <string>
#include <vector>

namespace deft::session {

/// The file for a session's entries, each written as soon as it exists.
class EntryFile {
public:
  /// The options' file, otherwise the device's in the user's folder; for a shard none. An error, before any
  /// measurement, if entries could not be written there. `isOfSchedule`: decides whether the spec's schedule
  /// allows an entry; null: always.
  static support::Result<EntryFile> open(const TuneOptions &options, const config_cache::DeviceKey &device,
                                         config_cache::LegalityCheck isOfSchedule);

  const std::string &path() const { return path_; } ///< empty: no file
  /// Writes the entry and earlier ones that could not be written. Returns a message for the user, or
  /// none.
  std::optional<std::string> add(const config_cache::Entry &entry);

  const config_cache::WriteReport &written() const { return written_; }
  /// Why the last entries are not written; none: all are.
  const std::optional<support::Error> &error() const { return error_; }

private:
  EntryFile() = default;
  bool isOfAnotherSchedule(const config_cache::Entry &entry) const;

  std::string path_;
  config_cache::Owner owner_ = config_cache::Owner::Deftc;
  config_cache::DeviceKey device_;
  config_cache::LegalityCheck isOfSchedule_;
  std::vector<config_cache::Entry> unsaved_;
  std::optional<support::Error> error_; ///< for unsaved_
  config_cache::WriteReport written_;
};

} // namespace deft::session
