#pragma once

#include "compiler/spec/Variant.h"
#include "compiler/support/Result.h"

#include <nlohmann/json_fwd.hpp>

namespace deft::package {

/// The parameter space that a spec's schedule spans: what is fixed, and what is to be tuned. Source
/// ranges are dropped, they mean nothing outside of their file.
nlohmann::json toJson(const spec::ScheduleSpec &schedule);
support::Result<spec::ScheduleSpec> spaceFromJson(const nlohmann::json &json);

} // namespace deft::package
