#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"
#include "runtime/config_cache/DeviceKey.h"
#include "tuner/sparse/TuneSparse.h"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// The contents of a tuning session's journal, arranged for people.
namespace deft::report {

struct CandidateData {
  std::string id, origin; ///< "default", "related", "neighbour", or the strategy
  config::Config config;
  double predictedUs = 0;    ///< by the plan's prices; 0: unknown
  double ratio = 0;          ///< its time over the untuned config's, in the search; 0: never timed
  double ratioSpread = 0;    ///< half the range of the middle half of its rounds, relative to that time
  int rounds = 0;            ///< of the search in which it was timed
  bool isDropped = false;    ///< as hopeless, before the last round
  std::string stage, reason; ///< of a rejection; empty: not rejected
};

struct TreeData {
  std::string name;
  int tokens = 0, queries = 0;
  bool isHeldOut = false;
  std::string untunedId;               ///< its config without an entry
  std::uint64_t seed = 0, similar = 0; ///< see session::Sample
};

struct ClassData {
  std::string name; ///< "c1-t14-q6-s3-d2-f0"
  std::vector<TreeData> trees;
  std::vector<CandidateData> candidates; ///< in order of appearance
  std::string defaultId, winnerId;       ///< winner empty: the class was not finished
  double untunedUs = 0, tunedUs = 0, spread = 0;
  double gain = 1, gainError = 0;
  std::optional<double> heldOutGain;
  bool keepsDefault = false;
  bool isCut = false; ///< its search ran out of time
  double seconds = 0;
  std::string note;

  bool isDone() const { return !winnerId.empty(); }
  bool isBegun() const { return !trees.empty() || !candidates.empty() || isDone() || !defaultId.empty(); }
  const CandidateData *find(const std::string &id) const;
};

struct SessionData {
  std::string path;                           ///< of the journal
  std::string command;                        ///< that started the session; empty: from an older deftc
  std::optional<config_cache::DeviceKey> key; ///< none: the journal names no valid device
  std::string variant, signature, device, backend, driver, deftcVersion, kernelHash, strategy, started;
  long long spaceAll = 0, spaceLegal = 0;
  std::vector<std::pair<std::string, long long>> broken; ///< points by the rule that excludes them
  std::vector<ClassData> classes; ///< if the journal lists them: also classes that the session did not reach
  int resumed = 0;
  std::string ended; ///< "complete", "budget", "interrupted"; empty: it was killed, or is still running
  int made = 0, reused = 0;
  double seconds = 0;
  std::optional<sparse::TuneReport> sparse; ///< of the layers that read lists, if they were tuned
};

/// An error if an event lacks a field that its kind requires.
support::Result<SessionData> sessionOf(const std::vector<nlohmann::json> &events, const std::string &path);
support::Result<SessionData> readSession(const std::string &path);

/// "union, chunk 512, sm90 128x64, 4 stages, 12 warps"; "union, chunk 512, 64 rows" if only rows count.
std::string configText(const config::Config &config);

} // namespace deft::report
