#include "runtime/doctor/Doctor.h"
#include "runtime/api/Convert.h"

#include <deft/doctor.hpp>

namespace deft {

Result<std::string> doctorReport() {
  return api::guarded([]() -> Result<std::string> { return toJson(doctor::examine()).dump(2); });
}

} // namespace deft
