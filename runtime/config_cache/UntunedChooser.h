#pragma once

#include "compiler/config/DevicePrices.h"
#include "compiler/kernels/Legality.h"
#include "compiler/spec/Variant.h"
#include "runtime/plan/Planner.h"

#include <optional>
#include <string>
#include <vector>

namespace deft::config_cache {

/// Prices of kernels are fitted at head dim 128. With fewer columns a tile takes nearly as long: its scores
/// and what all tiles wait for are the same (docs/kernels.md#few-columns).
config::CostCoefficients ofColumns(config::CostCoefficients cost, const spec::Tensors &tensors);

/// Where nothing was tuned: of the configs whose kernels there are, the one whose plan of a tree is the
/// cheapest by the cost model. Plans are made for that, so it is for when a tree is of another class than the
/// one before, not for every step. For one thread at a time.
class UntunedChooser {
public:
  /// Of `configs`, at least one, the first is chosen where prices do not say which: there is no other, the
  /// machine is not known (`units`, its multiprocessors, is 0; `target` is null), or a tree cannot be
  /// planned. By the device's `prices` plans are made and compared; without any, plans by those that the
  /// configs have, compared by those of the nearest device that ship. The target must outlive the chooser.
  UntunedChooser(const spec::Variant &variant, const target::Target *target, int units,
                 std::vector<config::Config> configs,
                 const std::optional<config::DevicePrices> &prices = std::nullopt);

  /// What the mask shows, where its parameters have other values than the defaults.
  void setReach(plan::Reach reach) { facts_.reach = std::move(reach); }

  /// What counts where one is chosen, of a price by the model for a plan of this config.
  static double rankOf(double us, const config::Config &config, const plan::Plan &plan);

  /// Whether there is a choice, for which a tree is needed.
  bool hasChoice() const { return configs_.size() > 1 && target_ && units_ > 0; }
  /// The cheapest config for this tree; valid until the chooser is gone.
  const config::Config &choose(const tree::KvTree &tree);
  /// By which kernels are compared.
  const config::CostCoefficients &kernelPrices() const { return kernelPrices_; }
  /// The config that is chosen where prices do not say which.
  const config::Config &first() const { return configs_.front(); }
  /// Why the last tree got its config: "12.3 us by the model with items of 64 rows; 14.1 with 128"; empty:
  /// there was no choice.
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
