#pragma once

#include "tuner/session/Tune.h"

#include <nlohmann/json_fwd.hpp>

namespace deft::session {

/// A class's result as the journal keeps it: the `done` event, but for `seconds`.
nlohmann::json doneEvent(const ClassReport &report, bool isCut);

/// What an earlier run came to, out of its `done` event; none: the entry is not understood.
std::optional<ClassReport> reportOfDone(const nlohmann::json &done, config_cache::DeviceKey::Kind device);

} // namespace deft::session
