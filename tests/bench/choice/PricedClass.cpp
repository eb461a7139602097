#include "tests/bench/choice/PricedClass.h"

#include "compiler/kernels/DefaultConfig.h"
#include "compiler/kernels/Occupancy.h"
#include "runtime/config_cache/ConfigChooser.h"
#include "runtime/config_cache/LargeTrees.h"
#include "runtime/config_cache/UntunedChooser.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

namespace deft::choice {
namespace {

void addTo(std::uint64_t &hash, const auto &values) {
  const std::string_view bytes(reinterpret_cast<const char *>(values.data()),
                               values.size() * sizeof(values[0]));
  hash = hash * 0x9e3779b97f4a7c15ULL ^ std::hash<std::string_view>()(bytes);
}

std::uint64_t hashOf(const std::vector<plan::Plan> &plans) {
  std::uint64_t hash = 0;
  for (const plan::Plan &plan : plans) {
    addTo(hash, plan.items);
    addTo(hash, plan.runs);
  }
  return hash;
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
  std::vector<config::Config> configs;
  if (auto untuned = kernels::defaultConfigs(variant_, config_cache::targetOf(measured.device)))
    configs = std::move(*untuned);
  for (const MeasuredConfig &one : measured.configs) {
    Point point{&one.config, one.us, blocksOf(one.config), false, 0, {}};
    if (!makePlans(one.config, facts_, point.blocks, point.plans))
      continue;
    point.isUntuned = std::any_of(configs.begin(), configs.end(), [&](const config::Config &config) {
      return config_cache::haveSameKernels(config, one.config);
    });
    point.hash = hashOf(point.plans);
    std::for_each(point.plans.begin(), point.plans.end(), strip);
    points_.push_back(std::move(point));
  }
  // What is weighed only for large trees no session measured.
  for (const config::Config &config : config_cache::usualOf(configs))
    if (auto untuned = asUntuned(config))
      untuned_.push_back(std::move(*untuned));
}

int PricedClass::blocksOf(const config::Config &config) const {
  return kernels::estimateBlocks(measured_.signature.shape(), config,
                                 config_cache::targetOf(measured_.device), measured_.device.units);
}

bool PricedClass::makePlans(const config::Config &config, const plan::VariantFacts &facts, int blocks,
                            std::vector<plan::Plan> &plans) const {
  plan::Planner planner;
  for (const tree::KvTree &tree : measured_.trees)
    if (!planner.make(tree, facts, config, blocks, plans.emplace_back()))
      return false;
  return true;
}

std::optional<UntunedConfig> PricedClass::asUntuned(const config::Config &config) const {
  UntunedConfig untuned{config, {}, blocksOf(config), std::nullopt};
  std::vector<plan::Plan> asRun;
  if (!makePlans(config, facts_, untuned.blocks, asRun) ||
      !makePlans(config, facts_.withoutPages(), untuned.blocks, untuned.plans))
    return std::nullopt;
  const std::uint64_t hash = hashOf(asRun);
  for (std::size_t i = 0; i < points_.size() && !untuned.found; ++i)
    if (points_[i].hash == hash && config_cache::haveSameKernels(*points_[i].config, config))
      untuned.found = i;
  return untuned;
}

bool PricedClass::hasUntuned() const {
  return std::any_of(points_.begin(), points_.end(), [](const Point &point) { return point.isUntuned; });
}

double PricedClass::price(std::size_t i, const config::CostCoefficients &cost) const {
  const Point &point = points_[i];
  return meanOver(*point.config, cost, point.blocks, point.plans,
                  [](double us, const plan::Plan &) { return us; });
}

double PricedClass::rank(const UntunedConfig &untuned, const config::CostCoefficients &cost) const {
  return meanOver(untuned.config, cost, untuned.blocks, untuned.plans,
                  [&](double us, const plan::Plan &plan) {
                    return config_cache::UntunedChooser::rankOf(us, untuned.config, plan);
                  });
}

template <typename Value>
double PricedClass::meanOver(config::Config config, const config::CostCoefficients &cost, int blocks,
                             const std::vector<plan::Plan> &plans, const Value &valueOf) const {
  config.cost = cost;
  plan::CostModel model;
  model.set(facts_, config, blocks);
  double logs = 0;
  for (const plan::Plan &plan : plans)
    logs += std::log(valueOf(model.estimate(plan).microseconds, plan));
  return std::exp(logs / static_cast<double>(plans.size()));
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

const UntunedConfig *PricedClass::choose(const config::CostCoefficients &cost) const {
  const UntunedConfig *best = nullptr;
  double least = 0;
  for (const UntunedConfig &one : untuned_)
    if (const double value = rank(one, cost); !best || value < least) {
      best = &one;
      least = value;
    }
  return best;
}

} // namespace deft::choice
