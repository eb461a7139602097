#include "tests/bench/choice/PricedClass.h"

#include "compiler/config/DefaultConfig.h"
#include "compiler/config/Occupancy.h"
#include "runtime/config_cache/ConfigChooser.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

namespace deft::choice {
namespace {

std::uint64_t hashOf(const auto &values, std::uint64_t seed) {
  const std::string_view bytes(reinterpret_cast<const char *>(values.data()),
                               values.size() * sizeof(values[0]));
  return seed * 0x9e3779b97f4a7c15ULL ^ std::hash<std::string_view>()(bytes);
}

/// Lets go of what the model does not look at.
void strip(plan::Plan &plan) {
  plan.runs.own().shrink_to_fit();
  plan.queryPos = {};
  plan.mergeSlot = {};
  plan.leaves = {};
  plan.tails = {};
  plan.mergeQuery.resize(std::min<std::size_t>(plan.mergeQuery.size(), 1));
  plan.mergeQuery.shrink_to_fit();
  plan.items.shrink_to_fit();
}

} // namespace

PricedClass::PricedClass(const MeasuredClass &measured)
    : measured_(measured), variant_(measured.signature.variant()), facts_(plan::VariantFacts::of(variant_)) {
  if (auto untuned = config::defaultConfigs(variant_, *config_cache::targetOf(measured.device)))
    untuned_ = std::move(*untuned);
  for (const MeasuredConfig &one : measured.configs) {
    Point point{&one.config, one.us, 0, false, 0, {}};
    if (!makePlans(one.config, point))
      continue;
    point.isUntuned = std::any_of(untuned_.begin(), untuned_.end(), [&](const config::Config &config) {
      return config_cache::haveSameKernels(config, one.config);
    });
    for (plan::Plan &plan : point.plans)
      strip(plan);
    points_.push_back(std::move(point));
  }
}

bool PricedClass::makePlans(const config::Config &config, Point &point) const {
  point.blocks = config::estimateBlocks(measured_.signature.shape(), config,
                                        *config_cache::targetOf(measured_.device), measured_.device.units);
  plan::Planner planner;
  for (const tree::KvTree &tree : measured_.trees) {
    plan::Plan plan;
    if (!planner.make(tree, facts_, config, point.blocks, plan))
      return false;
    point.hash = hashOf(plan.items, point.hash);
    point.hash = hashOf(plan.runs, point.hash);
    point.plans.push_back(std::move(plan));
  }
  return true;
}

bool PricedClass::hasUntuned() const {
  return std::any_of(points_.begin(), points_.end(), [](const Point &point) { return point.isUntuned; });
}

double PricedClass::price(std::size_t i, const config::CostCoefficients &cost) const {
  return price(points_[i], cost);
}

double PricedClass::price(const Point &point, const config::CostCoefficients &cost) const {
  config::Config priced = *point.config;
  priced.cost = cost;
  plan::CostModel model;
  model.set(facts_, priced, point.blocks);
  double logs = 0;
  for (const plan::Plan &plan : point.plans)
    logs += std::log(model.estimate(plan).microseconds);
  return std::exp(logs / static_cast<double>(point.plans.size()));
}

template <typename Value> std::size_t PricedClass::least(bool ofUntuned, const Value &valueOf) const {
  std::size_t best = points_.size();
  double least = 0;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    if (ofUntuned && !points_[i].isUntuned)
      continue;
    if (const double value = valueOf(i); best == points_.size() || value < least) {
      best = i;
      least = value;
    }
  }
  return best;
}

std::size_t PricedClass::choose(const config::CostCoefficients &cost, bool ofUntuned) const {
  return least(ofUntuned, [&](std::size_t i) { return price(i, cost); });
}

std::size_t PricedClass::fastest(bool ofUntuned) const {
  return least(ofUntuned, [&](std::size_t i) { return points_[i].us; });
}

UntunedChoice PricedClass::untuned(const config::CostCoefficients &cost) const {
  UntunedChoice best;
  Point bestPoint;
  for (config::Config config : untuned_) {
    config.partition = spec::Partition::Auto;
    config.cost = cost;
    Point point;
    point.config = &config;
    if (!makePlans(config, point))
      continue;
    const double us = price(point, cost);
    if (best.us == 0 || us < best.us) {
      best = {config, point.plans.front(), us, std::nullopt};
      bestPoint = std::move(point);
    }
  }
  for (std::size_t i = 0; i < points_.size() && !best.found; ++i)
    if (points_[i].hash == bestPoint.hash && config_cache::haveSameKernels(*points_[i].config, best.config))
      best.found = i;
  return best;
}

} // namespace deft::choice
