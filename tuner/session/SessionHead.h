#pragma once

#include "tuner/session/ChildProcesses.h"
#include "tuner/session/ClassTrees.h"

#include <nlohmann/json_fwd.hpp>

namespace deft::session {

/// The beginning of a journal: the `session` event. Its `identity` is a hash over all data that a session
/// depends on; only a journal of the same identity can be continued. All shards of a session share it.
struct SessionFacts {
  const TuneInput &input;
  const TuneOptions &options;
  const TunedDevice &device;
  const space::Space &space;
  const space::SpaceSize &size;  ///< of space
  const config::Config &untuned; ///< without a known tree
  const std::vector<TreesOfClass> &classes;
};
nlohmann::json sessionEvent(const SessionFacts &facts);

/// The journal's path: from the options, otherwise in the user's cache with a name from the event.
support::Result<std::string> journalPath(const TuneOptions &options, const nlohmann::json &event);

} // namespace deft::session
