#include "runtime/plan/AgainPrice.h"

#include <algorithm>

namespace deft::plan {
namespace {

/// For an H100 and an H200; other GPUs have 40 MB and more.
constexpr double kLastLevelBytes = 50e6;

} // namespace

config::CostCoefficients ofTree(config::CostCoefficients cost, const TreeView &view,
                                const VariantFacts &facts, const config::Config &config,
                                kernels::Families families) {
  if (kernels::familyOf(config.phases.front(), families).device != config::DeviceKind::Gpu)
    return cost;
  const int width = std::max(config::mostRows(config) / facts.ratio, 1);
  std::int64_t tokens = 0; // that more queries see than fit a tile
  for (const Segment &segment : view.segments)
    tokens += segment.queryEnd - segment.queryBegin > width ? segment.tokens : 0;
  const double bytes = static_cast<double>(tokens) * static_cast<double>(facts.tokenBytes());
  if (bytes <= kLastLevelBytes)
    return cost;
  const double held = kLastLevelBytes / bytes;
  cost.againGBs = 1 / (held / cost.againGBs + (1 - held) / cost.cacheGBs);
  return cost;
}

} // namespace deft::plan
