#pragma once

#include "tuner/session/Tune.h"

#include <optional>
#include <string>
#include <vector>

namespace deft::session {

/// The file that a session's entries go to, each as soon as it is there.
class EntryFile {
public:
  /// The one that the options name, else that of the device in the user's folder, else none, as of a shard.
  /// An error, before anything is measured, where entries could not be put there. `isOfSchedule`: what the
  /// spec's schedule admits; null: everything.
  static support::Result<EntryFile> open(const TuneOptions &options, const config_cache::DeviceKey &device,
                                         config_cache::LegalityCheck isOfSchedule);

  const std::string &path() const { return path_; } ///< empty: there is none
  /// Puts it there, with those that could not be put there before. What the user should know of it; none:
  /// nothing.
  std::optional<std::string> add(const config_cache::Entry &entry);

  const config_cache::WriteReport &written() const { return written_; }
  /// Why the last entries are not there; none: all are.
  const std::optional<support::Error> &error() const { return error_; }

private:
  EntryFile() = default;
  bool isOfAnotherSchedule(const config_cache::Entry &entry) const;

  std::string path_;
  config_cache::Place place_ = config_cache::Place::Cache;
  config_cache::DeviceKey device_;
  config_cache::LegalityCheck isOfSchedule_;
  std::vector<config_cache::Entry> unsaved_;
  std::optional<support::Error> error_; ///< of unsaved_
  config_cache::WriteReport written_;
};

} // namespace deft::session
