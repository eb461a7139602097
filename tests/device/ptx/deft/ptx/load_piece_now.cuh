#pragma once

#include "tests/device/Words.h"

namespace deft::ptx {

inline uint4 loadNow(const uint4 *from) { return *from; }
inline float loadNow(const float *from) { return *from; }

} // namespace deft::ptx
