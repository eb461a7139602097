#pragma once

#include "tests/device/Words.h"

/// The host's twin: blocks take turns where a flag is looked at, and the clock goes on with each look at it.
namespace deft::ptx {

inline void storeReleaseSystem(unsigned long long *to, unsigned long long value) { *to = value; }

inline unsigned long long loadAcquireSystem(const unsigned long long *from) {
  test::Block::now().giveWay();
  return *from;
}

inline void fenceSystem() {}

inline unsigned long long nanoseconds() {
  static unsigned long long now = 0;
  return now += 10;
}

} // namespace deft::ptx
