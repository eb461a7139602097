#pragma once

#include "runtime/plan/CostModel.h"
#include "runtime/plan/Planner.h"
#include "tests/bench/choice/Measured.h"

namespace deft::choice {

/// A config among which one is chosen where nothing was tuned.
struct UntunedConfig {
  config::Config config;
  std::vector<plan::Plan> plans; ///< as UntunedChooser prices them
  int blocks = 0;
  /// The measured config whose plans are the same: whatever they are called, they take as long. None: there
  /// is none.
  std::optional<std::size_t> found;
};

/// A measured class, whose configs are planned once and priced as often as one likes.
class PricedClass {
public:
  /// Configs that have no plan are left out.
  explicit PricedClass(const MeasuredClass &measured);

  const MeasuredClass &measured() const { return measured_; }
  const config::Config &configOf(std::size_t i) const { return *points_[i].config; }
  double usOf(std::size_t i) const { return points_[i].us; }
  bool hasUntuned() const;
  const std::vector<UntunedConfig> &untuned() const { return untuned_; }

  /// By the model, the geometric mean over the trees.
  double price(std::size_t i, const config::CostCoefficients &cost) const;

  /// The cheapest by the model; of the untuned configs' kernels alone, or of all.
  std::size_t choose(const config::CostCoefficients &cost, bool ofUntuned) const;
  std::size_t fastest(bool ofUntuned) const;

  /// What counts where one of the untuned is chosen: as UntunedChooser has it, the geometric mean over the
  /// trees.
  double rank(const UntunedConfig &untuned, const config::CostCoefficients &cost) const;
  /// The one that is chosen with these prices; no config at all is null.
  const UntunedConfig *choose(const config::CostCoefficients &cost) const;

private:
  struct Point {
    const config::Config *config = nullptr;
    double us = 0;
    int blocks = 0;
    bool isUntuned = false; ///< runs by kernels that a package has
    std::uint64_t hash = 0;
    std::vector<plan::Plan> plans; ///< what the model looks at of them
  };

  template <typename Value> std::size_t least(bool ofUntuned, const Value &valueOf) const;
  bool makePlans(const config::Config &config, const plan::VariantFacts &facts, int blocks,
                 std::vector<plan::Plan> &plans) const;
  int blocksOf(const config::Config &config) const;
  template <typename Value>
  double meanOver(config::Config config, const config::CostCoefficients &cost, int blocks,
                  const std::vector<plan::Plan> &plans, const Value &valueOf) const;
  std::optional<UntunedConfig> asUntuned(const config::Config &config) const;

  const MeasuredClass &measured_;
  spec::Variant variant_;
  plan::VariantFacts facts_;
  std::vector<UntunedConfig> untuned_;
  std::vector<Point> points_;
};

} // namespace deft::choice
