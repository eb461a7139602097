#pragma once

#include <string_view>

namespace deft::doctor {

/// The files of runtime/doctor/declared, in JSON.
extern const std::string_view kInterfaces; ///< functions of programs, by language
extern const std::string_view kEngines;    ///< features of the engines' plug-ins, which also read this file
extern const std::string_view kSeen;       ///< GPU runs on record, by feature; an engine's as "vLLM: mla"

} // namespace deft::doctor
