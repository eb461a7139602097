#pragma once

#include "compiler/config/DevicePrices.h"
#include "compiler/kernels/Legality.h"
#include "compiler/spec/Variant.h"
#include "runtime/plan/Planner.h"

#include <optional>
#include <string>
#include <vector>

namespace deft::config_cache {

/// Prices of kernels are fitted at head dim 128. With fewer columns a tile takes almost as long, since its
/// scores and the waits of all tiles do not change (docs/kernels.md#few-columns).
config::CostCoefficients ofColumns(config::CostCoefficients cost, const spec::Tensors &tensors);

/// Chooses if nothing was tuned: of the configs with kernels, the one with the cheapest plan of a tree by the
/// cost model. It makes these plans, so call it when the tree's class changes, not in every step. For one
/// thread at a time.
class UntunedChooser {
public:
  /// `configs` must not be empty. The first is the choice if prices cannot decide: it is the only one, the
  /// machine is unknown (`units`, its multiprocessors, is 0, or `target` is null), or the tree cannot be
  /// planned. The device's `prices` make and compare plans; without these, plans use the prices in the
  /// configs, compared by the nearest device's shipped ones. The target must outlive the chooser.
  UntunedChooser(const spec::Variant &variant, const target::Target *target, int units,
                 std::vector<config::Config> configs,
                 const std::optional<config::DevicePrices> &prices = std::nullopt);

  /// Sets the reach of the mask if its parameters do not have their defaults.
  void setReach(plan::Reach reach) { facts_.reach = std::move(reach); }

  /// The number that decides, from the model's price of a plan with this config.
  static double rankOf(double us, const config::Config &config, const plan::Plan &plan);

  /// Whether there is a choice, which needs a tree.
  bool hasChoice() const { return configs_.size() > 1 && target_ && units_ > 0; }
  /// The cheapest config for this tree; valid until the chooser is gone.
  const config::Config &choose(const tree::KvTree &tree);
  /// The prices by which kernels of the variant are compared: ofColumns().
  const config::CostCoefficients &kernelPrices() const { return kernelPrices_; }
  /// The config for cases in which prices cannot decide.
  const config::Config &first() const { return configs_.front(); }
  /// The reason for the last tree's config: "12.3 us by the model with items of 64 rows; 14.1 with 128";
  /// empty if there was no choice.
  const std::string &why() const { return why_; }

private:
  double price(const config::Config &config, const tree::KvTree &tree);

  kernels::KernelShape shape_;
  plan::VariantFacts facts_;
  const target::Target *target_;
  int units_;
  std::vector<config::Config> configs_;
  config::CostCoefficients kernelPrices_;
  std::string why_;
  plan::Planner planner_;
  plan::Plan plan_;
  plan::CostModel model_;
};

} // namespace deft::config_cache
