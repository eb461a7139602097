#pragma once

#include "tuner/sparse/TuneSparse.h"

#include <nlohmann/json_fwd.hpp>

/// The results of tuning sparse layers, for messages from child processes and for journals.
namespace deft::sparse {

nlohmann::json toJson(const TuneReport &report);
/// The same as an event of a session's journal (tuner/session/Journal.h).
nlohmann::json sparseEvent(const TuneReport &report);
/// An error if it is neither.
support::Result<TuneReport> tuneReportFromJson(const nlohmann::json &json);

} // namespace deft::sparse
