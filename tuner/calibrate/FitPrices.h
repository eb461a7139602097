#pragma once

#include "compiler/config/CostCoefficients.h"
#include "compiler/config/PriceNames.h"

#include <functional>
#include <span>
#include <vector>

namespace deft::calibrate {

/// A measured time, and the time by given prices.
struct Observation {
  double us = 0;
  std::function<double(const config::CostCoefficients &)> price;
};

struct FittedPrice {
  config::PriceName name;
  double factor = 1; ///< after over before; 1 if no probe determines it
  /// Whether the observations determine it: they reduce its uncertainty by more than half. A price that is
  /// not determined stays unchanged.
  bool isDecided = false;
};

struct PriceFit {
  std::vector<FittedPrice> prices; ///< those that are not 0 at the start
  config::CostCoefficients after;
};

/// Fits prices to observations, from `start`: least squares of the logarithms. Outliers (from other load on
/// the machine) count only in proportion. Each price stays near its start unless observations contradict
/// that.
PriceFit fitPrices(const std::vector<Observation> &observations, const config::CostCoefficients &start,
                   std::span<const config::PriceName> fitted);

/// Moves the prices of chunks, which no plan's time contains: that of an item as item_us, and so on. `token`
/// is the factor for a token, which has no price of its own outside chunks. One that follows a price that is
/// not determined is not determined either.
void moveChunkPrices(PriceFit &fit, double token);

/// Another set of prices, each multiplied by the factor that the fit found for it.
config::CostCoefficients movedAlike(config::CostCoefficients cost, const PriceFit &fit);

} // namespace deft::calibrate
