#pragma once

#include "tuner/session/Tune.h"

namespace deft::session {

/// The results of all shards of a session.
struct MergedShards {
  config_cache::DeviceKey device;
  config_cache::VariantSignature signature;
  int shards = 0;                   ///< of the session
  int measured = 0;                 ///< measurements, each by one shard
  std::vector<ClassReport> classes; ///< of the session, in its order; done if a shard has a result
  /// Names of missing shards and classes; results that were left out; drivers that
  /// differ.
  std::vector<std::string> warnings;

  std::vector<config_cache::Entry> entries() const;
};

/// Joins the journals of a session's shards, in any order; a whole session's journal counts as shard 0/1.
/// Errors name the files: journals of other sessions, devices or releases, a repeated shard, results for
/// another shard's class, and, unless `isPartial`, missing or unfinished shards. A result whose config was
/// wrong for another shard's trees is left out, with a warning.
support::Result<MergedShards> mergeShards(const std::vector<std::string> &paths, bool isPartial = false);

/// Whether the file begins like a journal.
bool saysJournal(const std::string &path);

} // namespace deft::session
