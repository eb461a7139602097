#pragma once

#include "tests/device/Words.h"

namespace deft::ptx {

inline void cpAsync16OrZero(unsigned shared, const void *global, bool isThere) {
  alignas(16) static constexpr char kZeros[16] = {};
  test::Block::now().copyLater(shared, isThere ? global : kZeros, 16);
}

} // namespace deft::ptx
