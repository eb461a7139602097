#pragma once

#include <deft/c/doctor.h>
#include <deft/result.hpp>

/// The state of this machine, and fixes for missing parts.
namespace deft {

/// Returns the output of `deftc doctor --json` (deft_doctor).
inline Result<std::string> doctorReport() { return detail::text(deft_doctor); }

/// Returns the output of `deftc doctor --support --json` (deft_support).
inline Result<std::string> supportTable() { return detail::text(deft_support); }

} // namespace deft
