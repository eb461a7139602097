#include "runtime/doctor/Doctor.h"
#include "runtime/api/Call.h"
#include "runtime/doctor/Support.h"

#include <deft/c/doctor.h>

using namespace deft::api;

deft_status deft_doctor(char **json) {
  return giveText({{"json", json}}, json,
                  []() -> Result<std::string> { return toJson(deft::doctor::examine()).dump(2); });
}

deft_status deft_support(char **json) {
  return giveText({{"json", json}}, json,
                  []() -> Result<std::string> { return deft::doctor::supportTable().dump(2); });
}
