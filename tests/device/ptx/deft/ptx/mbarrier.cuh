#pragma once

#include "tests/device/Words.h"

namespace deft::ptx {

inline void mbarrierInit(unsigned barrier, int arrivals) {
  test::Block::now().initBarrier(barrier, arrivals);
}
inline void mbarrierInitFence() {}
inline void mbarrierArrive(unsigned barrier, int arrivals = 1) {
  test::Block::now().arrive(barrier, arrivals);
}
inline void mbarrierArriveIf(bool condition, unsigned barrier, int arrivals) {
  if (condition)
    mbarrierArrive(barrier, arrivals);
}
inline void mbarrierArriveAfterCopies(unsigned barrier) { test::Block::now().arriveAfterCopies(barrier); }
inline void mbarrierWait(unsigned barrier, unsigned parity) { test::Block::now().wait(barrier, parity); }
inline bool mbarrierIsComplete(unsigned barrier, unsigned parity) {
  return test::Block::now().isComplete(barrier, parity);
}
inline void fenceAsyncProxy() {}

} // namespace deft::ptx
