#include "tuner/space/Space.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/support/Hash.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace deft::space {

using config::Config;
using config::PhaseConfig;

namespace {

std::size_t index(int value) { return static_cast<std::size_t>(value); }

int &phaseNumber(PhaseConfig &phase, Knob knob) {
  switch (knob) {
  case Knob::RowsAbove:
    return phase.rowsAbove;
  case Knob::TileQ:
    return phase.tileQ;
  case Knob::TileKv:
    return phase.tileKv;
  case Knob::Stages:
    return phase.stages;
  default:
    return phase.warps;
  }
}

} // namespace

Space::Space(kernels::KernelShape kernel, const target::Target *target, config::CostCoefficients cost,
             const std::vector<Axis> &planAxes, std::vector<SpaceShape> shapes, kernels::Families families)
    : kernel_(kernel), target_(target), cost_(cost), families_(families), shapes_(std::move(shapes)),
      planAxes_(static_cast<int>(planAxes.size())) {
  for (const SpaceShape &shape : shapes_) {
    axes_.push_back(planAxes);
    axes_.back().insert(axes_.back().end(), shape.axes.begin(), shape.axes.end());
  }
}

Config Space::configOf(const Point &point) const {
  Config config;
  config.phases = shapes_[index(point.shape)].phases;
  config.cost = cost_;
  const std::vector<Axis> &axes = this->axes(point.shape);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int value = axes[i].values[index(point.at[i])];
    switch (axes[i].knob) {
    case Knob::Partition:
      config.partition = static_cast<spec::Partition>(value);
      break;
    case Knob::Chunk:
      config.chunkTokens = value;
      break;
    case Knob::Cost:
      config.cost = withPreset(cost_, costPresets()[index(value)]);
      break;
    case Knob::Order:
      config.order = static_cast<config::Order>(value);
      break;
    default:
      phaseNumber(config.phases[index(axes[i].phase)], axes[i].knob) = value;
    }
  }
  return config;
}

const char *Space::broken(const Point &point, bool ofPlan, bool ofPhases) const {
  const Config config = configOf(point);
  int prices = 0;
  const std::vector<Axis> &axes = this->axes(point.shape);
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i].knob == Knob::Cost)
      prices = axes[i].values[index(point.at[i])];
  return brokenConstraint({kernel_, target_, config, prices, families_}, ofPlan, ofPhases);
}

const char *Space::broken(const Point &point) const { return broken(point, true, true); }

std::optional<Point> Space::find(const Config &config) const {
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    if (shapes_[s].phases.size() != config.phases.size())
      continue;
    Point point{static_cast<int>(s), {}};
    for (const Axis &axis : axes(point.shape)) {
      const auto at = [&] {
        switch (axis.knob) {
        case Knob::Partition:
          return std::find(axis.values.begin(), axis.values.end(), static_cast<int>(config.partition));
        case Knob::Chunk:
          return std::find(axis.values.begin(), axis.values.end(), config.chunkTokens);
        case Knob::Cost:
          return std::find_if(axis.values.begin(), axis.values.end(), [&](int preset) {
            return withPreset(cost_, costPresets()[index(preset)]) == config.cost;
          });
        case Knob::Order:
          return std::find(axis.values.begin(), axis.values.end(), static_cast<int>(config.order));
        default:
          PhaseConfig phase = config.phases[index(axis.phase)];
          return std::find(axis.values.begin(), axis.values.end(), phaseNumber(phase, axis.knob));
        }
      }();
      if (at == axis.values.end())
        break;
      point.at.push_back(static_cast<int>(at - axis.values.begin()));
    }
    // Members without an axis must be equal as well.
    if (point.at.size() == axes(point.shape).size() && configId(configOf(point)) == configId(config))
      return point;
  }
  return std::nullopt;
}

template <typename Visit>
void Space::walk(Point point, int firstAxis, int endAxis, const Visit &visit) const {
  const std::vector<Axis> &axes = this->axes(point.shape);
  for (int i = firstAxis; i < endAxis; ++i)
    point.at[index(i)] = 0;
  for (;;) {
    visit(point);
    int axis = endAxis - 1;
    while (axis >= firstAxis && ++point.at[index(axis)] == static_cast<int>(axes[index(axis)].values.size()))
      point.at[index(axis--)] = 0;
    if (axis < firstAxis)
      return;
  }
}

SpaceSize Space::size() const {
  SpaceSize size;
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    Point first{static_cast<int>(s), std::vector<int>(axes_[s].size(), 0)};
    long long plans = 0, legalPlans = 0;
    std::map<std::string, long long> brokenPlans;
    walk(first, 0, planAxes_, [&](const Point &point) {
      ++plans;
      if (const char *name = broken(point, true, false))
        ++brokenPlans[name];
      else
        ++legalPlans;
    });
    walk(first, planAxes_, static_cast<int>(axes_[s].size()), [&](const Point &point) {
      size.all += plans;
      if (const char *name = broken(point, false, true)) {
        size.broken[name] += plans;
        return;
      }
      size.legal += legalPlans;
      for (const auto &[name, count] : brokenPlans)
        size.broken[name] += count;
    });
  }
  return size;
}

std::vector<Point> Space::points() const {
  std::vector<Point> points;
  for (std::size_t s = 0; s < shapes_.size(); ++s)
    for (const Point &kernels : kernelsOf(static_cast<int>(s))) {
      const std::vector<Point> plans = plansOf(kernels);
      points.insert(points.end(), plans.begin(), plans.end());
    }
  return points;
}

std::vector<Point> Space::plansOf(const Point &kernels) const {
  std::vector<Point> points;
  walk(kernels, 0, planAxes_, [&](const Point &point) {
    if (!broken(point, true, false))
      points.push_back(point);
  });
  return points;
}

std::vector<Point> Space::kernelsOf(int shape) const {
  std::vector<Point> points;
  const Point first{shape, std::vector<int>(axes(shape).size(), 0)};
  walk(first, planAxes_, static_cast<int>(first.at.size()), [&](const Point &point) {
    if (!broken(point, false, true))
      points.push_back(point);
  });
  return points;
}

std::vector<Point> Space::neighbours(const Point &point) const {
  std::vector<Point> found;
  const std::vector<Axis> &axes = this->axes(point.shape);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int count = static_cast<int>(axes[i].values.size()), own = point.at[i];
    for (int value = 0; value < count; ++value) {
      if (value == own || (axes[i].isOrdered() && std::abs(value - own) != 1))
        continue;
      Point next = point;
      next.at[i] = value;
      if (!broken(next))
        found.push_back(std::move(next));
    }
  }
  return found;
}

std::string configId(const Config &config) {
  return support::sha256Hex(config::toJson(config).dump()).substr(0, 12);
}

} // namespace deft::space
