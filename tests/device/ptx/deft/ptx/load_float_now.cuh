#pragma once

#include "tests/device/Words.h"

namespace deft::ptx {

inline float loadNow(const float *from) { return *from; }

} // namespace deft::ptx
