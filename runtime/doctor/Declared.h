#pragma once

#include <string_view>

namespace deft::doctor {

/// The files of runtime/doctor/declared, each JSON.
extern const std::string_view kInterfaces; ///< functions of programs, by language
extern const std::string_view kEngines;    ///< what engines' plug-ins support, which these read, too
extern const std::string_view kSeen;       ///< GPU runs on record, by feature

} // namespace deft::doctor
