#include "runtime/plan/AgainPrice.h"

#include <algorithm>

namespace deft::plan {

double bytesReadAgain(const TreeView &view, const VariantFacts &facts, const config::Config &config,
                      kernels::Families families) {
  if (kernels::familyOf(config.phases.front(), families).device != config::DeviceKind::Gpu)
    return 0;
  const int width = std::max(config::mostRows(config) / facts.ratio, 1);
  std::int64_t tokens = 0;
  for (const Segment &segment : view.segments)
    tokens += segment.queryEnd - segment.queryBegin > width ? segment.tokens : 0;
  return static_cast<double>(tokens) * static_cast<double>(facts.tokenBytes());
}

config::CostCoefficients ofBytes(config::CostCoefficients cost, double readAgain) {
  const double cacheBytes = cost.lastLevelMB * 1e6;
  if (readAgain <= cacheBytes)
    return cost;
  const double held = cacheBytes / readAgain;
  cost.againGBs = 1 / (held / cost.againGBs + (1 - held) / cost.cacheGBs);
  return cost;
}

} // namespace deft::plan
