#include "compiler/config/Occupancy.h"

#include "compiler/config/SharedMemory.h"

#include <algorithm>
#include <limits>

namespace deft::config {

int blocksPerSm(const KernelShape &shape, const PhaseConfig &phase, const target::Target &target) {
  const int threads = 32 * std::max(1, phase.warps);
  // Blocks of the sm90 family share the registers of one multiprocessor out between their warpgroups.
  const int ofSm90 = isLight(phase) ? 2 : 1;
  const int registers = phase.family == Family::Sm90
                            ? target.registersPerSm / (threads * ofSm90)
                            : std::min(estimateRegisters(shape, phase), target.registersPerThread);
  const int bySmem = target.smemPerSm / (smemBytes(shape.headDim, phase) + target.smemReserved);
  return std::min({bySmem, target.registersPerSm / (registers * threads), target.threadsPerSm / threads,
                   target.blocksPerSm});
}

int estimateBlocks(const KernelShape &shape, const Config &config, const target::Target &target,
                   int multiprocessors) {
  int fewest = std::numeric_limits<int>::max();
  for (const PhaseConfig &phase : config.phases)
    fewest = std::min(fewest, blocksPerSm(shape, phase, target));
  return std::max(1, fewest) * multiprocessors;
}

} // namespace deft::config
