#pragma once

#include "tuner/session/Tune.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>

namespace deft::session {

/// A class's result as the journal keeps it: the `done` event, but for `seconds`.
nlohmann::json doneEvent(const ClassReport &report);

/// For people: "c1-t12-q4-s4-d1-f0: 1.25 times as fast as untuned".
std::string resultText(const ClassReport &report);

/// What an earlier run came to, out of its `done` event; none: the entry is not understood.
std::optional<ClassReport> reportOfDone(const nlohmann::json &done, config_cache::DeviceKey::Kind device);

} // namespace deft::session
