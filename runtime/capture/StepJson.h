#pragma once

#include "runtime/capture/Step.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

/// The parts of a captured step as JSON, a pair of functions each. Readers throw support::WrongField.
namespace deft::capture {

std::string momentName(Moment moment);
Moment momentOf(const nlohmann::json &file);

nlohmann::ordered_json toJson(const RunFacts &run);
RunFacts runOf(const nlohmann::json &json);

nlohmann::ordered_json toJson(const PlanFacts &plan);
PlanFacts planOf(const nlohmann::json &json);

nlohmann::ordered_json toJson(const ConfigReason &reason);
ConfigReason reasonOf(const nlohmann::json &json);

nlohmann::ordered_json toJson(const Drafts &drafts);
Drafts draftsOf(const nlohmann::json &json);

/// By name: {"slope": {"f32": [1.5]}}.
nlohmann::json toJson(const std::vector<NamedParam> &params);
std::vector<NamedParam> paramsOf(const nlohmann::json &json);

std::vector<PageStretch> pageTableOf(const nlohmann::json &list);

/// A list of integers between `least` and `most`.
std::vector<int> integersOf(const nlohmann::json &list, const char *what, std::int64_t least,
                            std::int64_t most);

} // namespace deft::capture
