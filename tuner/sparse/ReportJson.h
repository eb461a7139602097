#pragma once

#include "tuner/sparse/TuneSparse.h"

#include <nlohmann/json_fwd.hpp>

/// What a tuning of sparse layers found out, as child processes say it and journals keep it.
namespace deft::sparse {

nlohmann::json toJson(const TuneReport &report);
/// The same as an event of a session's journal (tuner/session/Journal.h).
nlohmann::json sparseEvent(const TuneReport &report);
/// An error where it is neither.
support::Result<TuneReport> tuneReportFromJson(const nlohmann::json &json);

} // namespace deft::sparse
