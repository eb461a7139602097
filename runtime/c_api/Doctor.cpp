#include "runtime/c_api/Texts.h"

#include <deft/c/doctor.h>
#include <deft/doctor.hpp>

using namespace deft::c;

deft_status deft_doctor(char **json) {
  return giveText(__func__, {{"json", json}}, json, [] { return deft::doctorReport(); });
}
