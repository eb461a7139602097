#pragma once

#include <cstddef>
#include <span>

namespace deft::calibrate {

/// A plan that was timed, and what prices say of it.
struct PricedProbe {
  std::size_t tree = 0;  ///< which one
  bool isChoice = false; ///< among what is chosen from
  double us = 0, priceUs = 0;
  double rank = 0; ///< by which the choice is made: the least
};

/// How far prices are from times, and what choices by them cost.
struct PriceQuality {
  double medianError = 0, worstError = 0; ///< 0.1: off by 10 %
  double meanRegret = 0, worstRegret = 0; ///< of the cheapest of a tree's configs over the fastest
  int trees = 0;                          ///< on which there is a choice
};

/// Of at least one probe.
PriceQuality qualityOf(std::span<const PricedProbe> probes);

} // namespace deft::calibrate
