#include "compiler/config/SharedMemory.h"

#include <algorithm>

namespace deft::config {

namespace {

int sm80Bytes(int headDim, const PhaseConfig &phase) {
  // A row is swizzled where it fills whole 128-byte lines, else padded to an odd number of 16-byte columns.
  const int columns = headDim / 8;
  const int rowBytes = 16 * (columns % 8 == 0 ? columns : columns | 1);
  const int ringBytes = 2 * phase.stages * phase.tileKv * rowBytes;
  const int joinBytes = phase.warps * 16 * (headDim + 4 + 2) * 4;
  const int queryBytes = headDim <= 128 ? 0 : phase.tileQ * rowBytes;
  const int recordBytes = (phase.stages + 1) * phase.tileKv * 20;
  return std::max(ringBytes, joinBytes) + queryBytes + recordBytes;
}

int sm90Bytes(int headDim, const PhaseConfig &phase) {
  const int tileBytes = (headDim + 63) / 64 * phase.tileKv * 128; // blocks of 64 columns
  const int rowBytes = 2 * (headDim <= 128 ? headDim : 96) + 16;
  const int groups = phase.warps / 4 - 1;                 // that compute
  const int roomBytes = 4 * groups * 16 * rowBytes;       // sums that are joined, results on their way out
  const bool queriesStay = headDim < 80 || headDim > 128; // the next unit's then have places of their own
  const int pieces = queriesStay && headDim <= 192 ? 2 * groups : groups;
  const int pieceBytes = tileBytes + 32 + 64 * 8 + 2 * 8;   // queries, item, facts of rows, barriers
  const int slotBytes = 64 + phase.tileKv * 12;             // facts of groups, records of tokens
  const int stageBytes = 2 * tileBytes + slotBytes + 2 * 8; // K, V, slot, barriers
  constexpr int kAlignment = 1024;
  return phase.stages * stageBytes + roomBytes + pieces * pieceBytes + kAlignment;
}

} // namespace

int smemBytes(int headDim, const PhaseConfig &phase) {
  return phase.family == Family::Sm90 ? sm90Bytes(headDim, phase) : sm80Bytes(headDim, phase);
}

} // namespace deft::config
