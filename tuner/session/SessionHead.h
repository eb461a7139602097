#pragma once

#include "tuner/session/ChildProcesses.h"
#include "tuner/session/ClassTrees.h"

#include <nlohmann/json_fwd.hpp>

namespace deft::session {

/// What a journal begins with: the `session` event. Its `identity` is a hash over all that a session depends
/// on; one of another identity cannot be gone on with. All shards of a session have the same one.
struct SessionFacts {
  const TuneInput &input;
  const TuneOptions &options;
  const TunedDevice &device;
  const space::Space &space;
  const space::SpaceSize &size;  ///< of space
  const config::Config &untuned; ///< where no tree is known
  const std::vector<TreesOfClass> &classes;
};
nlohmann::json sessionEvent(const SessionFacts &facts);

/// Where the journal is: what the options say, else a file in the user's cache that is named by the event.
support::Result<std::string> journalPath(const TuneOptions &options, const nlohmann::json &event);

} // namespace deft::session
