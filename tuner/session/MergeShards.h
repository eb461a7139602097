#pragma once

#include "tuner/session/Tune.h"

namespace deft::session {

/// What all shards of a session found.
struct MergedShards {
  config_cache::DeviceKey device;
  config_cache::VariantSignature signature;
  int shards = 0;                   ///< that the session has
  int measured = 0;                 ///< measurements, each by one of them
  std::vector<ClassReport> classes; ///< of the session, in its order; done where a shard has a result
  /// What is missing, shards by their names and classes by theirs; results that were left out; drivers that
  /// differ.
  std::vector<std::string> warnings;

  std::vector<config_cache::Entry> entries() const;
};

/// Joins the journals of a session's shards, given in any order; that of a whole session counts as shard 0/1.
/// Errors, which name the files: journals of other sessions, devices or releases, a shard that is given
/// twice, results of a class that is another shard's, and, unless `isPartial`, shards that are missing or
/// have not ended. A result whose config was wrong for another shard's trees is left out, with a warning.
support::Result<MergedShards> mergeShards(const std::vector<std::string> &paths, bool isPartial = false);

/// Whether the file begins as a journal does.
bool saysJournal(const std::string &path);

} // namespace deft::session
