#pragma once

#include <cstddef>
#include <span>

namespace deft::calibrate {

/// A plan that was timed, and its time by given prices.
struct PricedProbe {
  std::size_t tree = 0;  ///< its index
  bool isChoice = false; ///< whether an untuned choice may be this one
  double us = 0, priceUs = 0;
  double rank = 0; ///< the choice is the least rank
};

/// The distance of prices from times, and the cost of choices by these prices.
struct PriceQuality {
  double medianError = 0, worstError = 0; ///< 0.1: off by 10 %
  double meanRegret = 0, worstRegret = 0; ///< of a tree's cheapest config over its fastest
  int trees = 0;                          ///< that have a choice
};

/// Needs at least one probe.
PriceQuality qualityOf(std::span<const PricedProbe> probes);

} // namespace deft::calibrate
