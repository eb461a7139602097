#pragma once

#include "tests/device/Words.h"

namespace deft::ptx {

inline uint2 loadNow(const uint2 *from) { return *from; }

} // namespace deft::ptx
