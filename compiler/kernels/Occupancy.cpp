#include "compiler/kernels/Occupancy.h"

#include <algorithm>
#include <limits>

namespace deft::kernels {

int blocksPerSm(const PhaseSite &site) {
  if (!site.target)
    return 1;
  const target::Target &target = *site.target;
  const int threads = 32 * std::max(1, site.phase.warps);
  const int smem = site.family.smemBytes(site.shape, site.phase) + target.smemReserved;
  return std::min({target.smemPerSm / smem, target.registersPerSm / (site.family.registers(site) * threads),
                   target.threadsPerSm / threads, target.blocksPerSm});
}

int estimateBlocks(const KernelShape &shape, const config::Config &config, const target::Target *target,
                   int units, Families all) {
  int fewest = std::numeric_limits<int>::max();
  for (const PhaseConfig &phase : config.phases)
    fewest = std::min(fewest, blocksPerSm(shape, phase, target, all));
  return std::max(1, fewest) * units;
}

} // namespace deft::kernels
