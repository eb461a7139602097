#pragma once

#include "tests/device/Words.h"

/// The host's twin of templates/deft/ptx/block.cuh; so are its neighbours, each of the file of its name.
namespace deft::ptx {

template <int kAlignment> char *dynamicShared() { return test::Block::now().dynamicShared(kAlignment); }
inline unsigned sharedAddress(const void *pointer) { return test::Block::now().addressOf(pointer); }
inline int blocksReadHere() { return static_cast<int>(gridDim.x); }

/// By warpgroups.
template <int kRegisters> void keepRegisters() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256);
  test::Block::now().dealRegisters(kRegisters);
}
template <int kRegisters> void takeRegisters() { keepRegisters<kRegisters>(); }

} // namespace deft::ptx
