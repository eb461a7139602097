#include "tests/bench/choice/Fit.h"

#include <algorithm>
#include <cmath>

namespace deft::choice {
namespace {

/// What is made small: the mean logarithm of how much longer choices of untuned configs take, those far off
/// more than in proportion, and a little of how far prices are from times.
double lossOf(const std::vector<PricedClass> &classes, const config::CostCoefficients &cost) {
  constexpr double kFar = 4, kPrice = 0.1;
  double loss = 0;
  for (const PricedClass &one : classes) {
    double least = 0, chosen = 0, fastest = 0, squares = 0, count = 0;
    for (const UntunedConfig &config : one.untuned()) {
      if (!config.found)
        continue;
      const double rank = one.rank(config, cost), us = one.usOf(*config.found);
      if (count == 0 || rank < least) {
        least = rank;
        chosen = us;
      }
      fastest = count == 0 ? us : std::min(fastest, us);
      squares += std::pow(std::log(rank / us), 2);
      ++count;
    }
    if (count == 0)
      continue;
    const double over = std::log(chosen / fastest);
    loss += over + kFar * over * over + kPrice * std::sqrt(squares / count);
  }
  return loss / static_cast<double>(classes.size());
}

} // namespace

config::CostCoefficients fit(const std::vector<PricedClass> &classes, const config::CostCoefficients &start) {
  using Cost = config::CostCoefficients;
  config::CostCoefficients best = start;
  double least = lossOf(classes, best);
  constexpr double Cost::*kPrices[] = {
      &Cost::cacheGBs,  &Cost::againGBs,  &Cost::partialGBs, &Cost::wgmmaBlockGflops, &Cost::stepUs,
      &Cost::itemUs,    &Cost::runUs,     &Cost::launchUs,   &Cost::mergeUs,          &Cost::slotUs,
      &Cost::lightStep, &Cost::lightItem, &Cost::turnStep};
  for (const double step : {1.5, 1.25, 1.1, 1.05}) {
    for (bool isBetter = true; isBetter;) {
      isBetter = false;
      for (double Cost::*price : kPrices)
        for (const double factor : {step, 1 / step}) {
          Cost tried = best;
          tried.*price *= factor;
          if (const double loss = lossOf(classes, tried); loss < least * (1 - 1e-6)) {
            least = loss;
            best = tried;
            isBetter = true;
          }
        }
    }
  }
  return best;
}

} // namespace deft::choice
