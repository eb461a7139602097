#pragma once

#include "tests/device/Words.h"

namespace deft::ptx {

inline int clusterRank() { return static_cast<int>(test::Block::now().clusterRank()); }
inline void syncCluster() { test::Block::now().syncCluster(); }
inline int readOfBlock(const int *mine, int rank) {
  test::Block &block = test::Block::now();
  int value;
  std::memcpy(&value,
              block.ofCluster(static_cast<unsigned>(rank)).shared(block.addressOf(mine), sizeof value),
              sizeof value);
  return value;
}

} // namespace deft::ptx
