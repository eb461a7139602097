#include "tuner/search/TypicalKernels.h"

#include "compiler/kernels/Family.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace deft::search {

using space::Knob;
using space::Point;

namespace {

/// For shapes with more kernels, a search starts at some of them and finds the rest as neighbours.
constexpr std::size_t kMostKernels = 16;

} // namespace

double oddness(const space::Space &space, const Point &point) {
  const config::Config config = space.configOf(point);
  if (kernels::countsRowsAlone(config, space.families()))
    return 0;
  double sum = 0;
  for (const config::PhaseConfig &phase : config.phases) {
    sum -= 0.25 * phase.stages;
    const kernels::Family &family = kernels::familyOf(phase, space.families());
    if (family.oddness)
      sum += family.oddness({space.kernel(), phase, space.target(), family});
  }
  const auto phases = static_cast<double>(config.phases.size());
  return sum / phases + (phases - 1);
}

std::vector<Point> typicalKernels(const space::Space &space, int shape) {
  std::vector<Point> all = space.kernelsOf(shape);
  if (all.size() <= kMostKernels)
    return all;
  const std::vector<space::Axis> &axes = space.axes(shape);
  std::map<std::vector<int>, std::pair<double, Point>> best;
  for (const Point &point : all) {
    std::vector<int> key;
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (axes[i].knob == Knob::TileQ || axes[i].knob == Knob::RowsAbove)
        key.push_back(point.at[i]);
    const double odd = oddness(space, point);
    const auto [found, isNew] = best.try_emplace(key, odd, point);
    if (!isNew && odd < found->second.first)
      found->second = {odd, point};
  }
  std::vector<Point> typical;
  typical.reserve(best.size());
  for (const auto &[key, entry] : best)
    typical.push_back(entry.second);
  return typical;
}

} // namespace deft::search
