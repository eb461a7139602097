#pragma once

#include <deft/c/doctor.h>
#include <deft/result.hpp>

/// What this machine can do, and how to mend what is missing.
namespace deft {

/// What `deftc doctor --json` prints (deft_doctor).
inline Result<std::string> doctorReport() { return detail::text(deft_doctor); }

/// What `deftc doctor --support --json` prints (deft_support).
inline Result<std::string> supportTable() { return detail::text(deft_support); }

} // namespace deft
