#pragma once

#include "runtime/plan/CostModel.h"
#include "runtime/plan/Planner.h"
#include "tests/bench/choice/Measured.h"

namespace deft::choice {

/// What is chosen where nothing was tuned.
struct UntunedChoice {
  config::Config config;
  plan::Plan plan; ///< of the first tree
  double us = 0;   ///< by the model
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
  std::size_t size() const { return points_.size(); }
  const config::Config &configOf(std::size_t i) const { return *points_[i].config; }
  double usOf(std::size_t i) const { return points_[i].us; }
  bool isUntuned(std::size_t i) const { return points_[i].isUntuned; }
  bool hasUntuned() const;

  /// By the model, the geometric mean over the trees.
  double price(std::size_t i, const config::CostCoefficients &cost) const;

  /// The cheapest by the model; of the untuned configs' kernels alone, or of all.
  std::size_t choose(const config::CostCoefficients &cost, bool ofUntuned) const;
  std::size_t fastest(bool ofUntuned) const;

  UntunedChoice untuned(const config::CostCoefficients &cost) const;

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
  bool makePlans(const config::Config &config, Point &point) const;
  double price(const Point &point, const config::CostCoefficients &cost) const;

  const MeasuredClass &measured_;
  spec::Variant variant_;
  plan::VariantFacts facts_;
  std::vector<config::Config> untuned_;
  std::vector<Point> points_;
};

} // namespace deft::choice
