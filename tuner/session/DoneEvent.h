#pragma once

#include "tuner/session/Tune.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>

namespace deft::session {

/// A class's result in the journal: the `done` event, without `seconds`.
nlohmann::json doneEvent(const ClassReport &report);

/// For people: "c1-t12-q4-s4-d1-f0: 1.25 times as fast as untuned".
std::string resultText(const ClassReport &report);

/// The result of an earlier run from its `done` event; none: its entry is invalid.
std::optional<ClassReport> reportOfDone(const nlohmann::json &done, config_cache::DeviceKey::Kind device);

} // namespace deft::session
