#pragma once

#include "compiler/config/CostCoefficients.h"
#include "compiler/config/PriceNames.h"

#include <functional>
#include <span>
#include <vector>

namespace deft::calibrate {

/// What something took, and what prices say of it.
struct Observation {
  double us = 0;
  std::function<double(const config::CostCoefficients &)> price;
};

struct FittedPrice {
  config::PriceName name;
  double factor = 1; ///< after over before; 1 where no probe decides it
  /// Whether the observations decide it: what is known of it afterwards is less than half as wide as before.
  /// One that they do not decide stays as it was.
  bool isDecided = false;
};

struct PriceFit {
  std::vector<FittedPrice> prices; ///< those that are not 0 at the start
  config::CostCoefficients after;
};

/// Prices by which observations come out, fitted from `start`: least squares of the logarithms, observations
/// far off (somebody else was at work) no more than in proportion, and each price held near where it was as
/// far as nothing tells otherwise.
PriceFit fitPrices(const std::vector<Observation> &observations, const config::CostCoefficients &start,
                   std::span<const config::PriceName> fitted);

/// Another set of prices, each moved by the factor that the fit found for it.
config::CostCoefficients movedAlike(config::CostCoefficients cost, const PriceFit &fit);

} // namespace deft::calibrate
