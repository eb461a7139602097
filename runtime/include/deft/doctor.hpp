#pragma once

#include <deft/c/doctor.h>
#include <deft/result.hpp>

/// The state of this machine, and fixes for missing parts.
namespace deft {

/// What `deftc doctor --json` prints (deft_doctor).
inline Result<std::string> doctorReport() { return detail::text(deft_doctor); }

/// What `deftc doctor --support --json` prints (deft_support).
inline Result<std::string> supportTable() { return detail::text(deft_support); }

} // namespace deft
