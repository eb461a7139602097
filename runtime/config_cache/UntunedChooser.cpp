#include "runtime/config_cache/UntunedChooser.h"

#include "compiler/kernels/Occupancy.h"
#include "compiler/support/Numbers.h"
#include "runtime/config_cache/LargeTrees.h"
#include "runtime/plan/AgainPrice.h"

#include <algorithm>

namespace deft::config_cache {
namespace {

/// Plans that deal tokens take the host longer, and savings as small as that the model does not know.
constexpr double kDealtMargin = 1.03;

/// Weighing tiles of more than the usual rows costs the host another plan. A step of a model has some thirty
/// layers of one plan, so that a saving of 5 % pays from this time of a layer on. They are taken where they
/// save more than the model may be wrong by.
constexpr double kLargeUs = 25, kLargeMargin = 1.02;

/// Whether more rows see some tokens than usual tiles have.
bool fillsLargeTiles(const plan::TreeView &view, int ratio) {
  return std::any_of(view.segments.begin(), view.segments.end(), [&](const plan::Segment &segment) {
    return (segment.queryEnd - segment.queryBegin) * ratio > kUsualRows;
  });
}

/// Of a device of which no more is known.
config::DevicePrices pricesOfNoModel(const target::Target *target, int units) {
  const std::string arch =
      target ? "sm_" + std::to_string(10 * target->major + target->minor) : std::string("x86-64");
  return config::pricesFor({kernels::deviceOf(target), arch, std::max(units, 1), config::someGpu().name});
}

} // namespace

config::CostCoefficients ofColumns(config::CostCoefficients cost, const spec::Tensors &tensors) {
  constexpr double kFittedPairFlops = 4 * 128;
  cost.wgmmaBlockGflops *= std::min(1.0, tensors.pairFlops() / kFittedPairFlops);
  return cost;
}

UntunedChooser::UntunedChooser(const spec::Variant &variant, const target::Target *target, int units,
                               std::vector<config::Config> configs,
                               const std::optional<config::DevicePrices> &prices)
    : shape_(kernels::KernelShape::of(variant)),
      facts_(plan::VariantFacts::of(variant, kernels::deviceOf(target)).withoutPages()), target_(target),
      units_(units), configs_(std::move(configs)),
      kernelPrices_(
          ofColumns(prices ? prices->kernels : pricesOfNoModel(target, units).kernels, variant.tensors)) {
  if (prices)
    for (config::Config &config : configs_)
      config.cost = prices->plans;
}

double UntunedChooser::rankOf(double us, const config::Config &config, const plan::Plan &plan) {
  return plan::rankOf(us, config.cost, plan) * (kernels::isDealt(config) ? kDealtMargin : 1) *
         (isForLargeTrees(config) ? kLargeMargin : 1);
}

const config::Config &UntunedChooser::choose(const tree::KvTree &tree) {
  why_.clear();
  if (!hasChoice())
    return configs_.front();
  std::vector<double> prices(configs_.size()), ranks(configs_.size());
  std::size_t best = 0;
  const auto isDearer = [&](std::size_t a, std::size_t b) {
    return prices[b] > 0 && (prices[a] <= 0 || ranks[b] < ranks[a]);
  };
  const auto weigh = [&](bool isForLarge) {
    for (std::size_t i = 0; i < configs_.size(); ++i) {
      if (isForLargeTrees(configs_[i]) != isForLarge)
        continue;
      prices[i] = price(configs_[i], tree);
      ranks[i] = rankOf(prices[i], configs_[i], plan_);
      if (isDearer(best, i))
        best = i;
    }
  };
  weigh(false);
  if (prices[best] <= 0 ||
      (prices[best] > kLargeUs && fillsLargeTiles(planner_.read(tree, facts_), facts_.ratio)))
    weigh(true);
  if (prices[best] <= 0)
    return configs_.front();
  const auto described = [&](std::size_t i, const char *unit, const char *items) {
    return support::rounded(prices[i], 1) + unit + std::to_string(config::mostRows(configs_[i])) + items +
           (kernels::isDealt(configs_[i]) ? ", dealt to warps" : "");
  };
  why_ = described(best, " us by the model with items of ", " rows");
  for (std::size_t i = 0; i < configs_.size(); ++i)
    if (i != best && prices[i] > 0)
      why_ += described(i, " with ", "").insert(0, "; ");
  return configs_[best];
}

/// 0: there is no plan.
double UntunedChooser::price(const config::Config &config, const tree::KvTree &tree) {
  const int blocks = kernels::estimateBlocks(shape_, config, target_, units_);
  if (!planner_.make(tree, facts_, config, blocks, plan_))
    return 0;
  model_.set(facts_, config, plan::ofTree(kernelPrices_, planner_.read(tree, facts_), facts_, config),
             blocks);
  return model_.estimate(plan_).microseconds;
}

} // namespace deft::config_cache
