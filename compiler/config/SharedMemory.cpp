#include "compiler/config/SharedMemory.h"

#include <algorithm>

namespace deft::config {

int smemBytes(int headDim, const PhaseConfig &phase) {
  // A row is swizzled where it fills whole 128-byte lines, else padded to an odd number of 16-byte columns.
  const int columns = headDim / 8;
  const int rowBytes = 16 * (columns % 8 == 0 ? columns : columns | 1);
  const int ringBytes = 2 * phase.stages * phase.tileKv * rowBytes;
  const int joinBytes = phase.warps * 16 * (headDim + 4 + 2) * 4;
  const int queryBytes = headDim <= 128 ? 0 : phase.tileQ * rowBytes;
  const int recordBytes = (phase.stages + 1) * phase.tileKv * 20;
  return std::max(ringBytes, joinBytes) + queryBytes + recordBytes;
}

} // namespace deft::config
