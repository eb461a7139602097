#pragma once

#include "tests/device/Words.h"

namespace deft::ptx {

inline void namedBarrierSync(int barrier, int threads) {
  test::Block::now().arriveAtBarrier(barrier, threads, true);
}
inline void namedBarrierArrive(int barrier, int threads) {
  test::Block::now().arriveAtBarrier(barrier, threads, false);
}
inline void namedBarrierSyncIf(bool condition, int barrier, int threads) {
  if (condition)
    namedBarrierSync(barrier, threads);
}
inline void namedBarrierArriveIf(bool condition, int barrier, int threads) {
  if (condition)
    namedBarrierArrive(barrier, threads);
}

} // namespace deft::ptx
