#include "tests/bench/choice/Fit.h"

#include <cmath>

namespace deft::choice {
namespace {

/// What is made small: the mean logarithm of how much longer choices take, those far off more than in
/// proportion, and a little of how badly prices are in proportion to times.
double lossOf(const std::vector<PricedClass> &classes, const config::CostCoefficients &cost) {
  constexpr double kFar = 4, kProportion = 0.1;
  double loss = 0;
  for (const PricedClass &one : classes) {
    std::size_t chosen = 0;
    double least = 0, fastest = 0, sum = 0, squares = 0, count = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (!one.isUntuned(i))
        continue;
      const double price = one.price(i, cost);
      if (count == 0 || price < least) {
        least = price;
        chosen = i;
      }
      fastest = count == 0 ? one.usOf(i) : std::min(fastest, one.usOf(i));
      const double error = std::log(price / one.usOf(i));
      sum += error;
      squares += error * error;
      ++count;
    }
    const double over = std::log(one.usOf(chosen) / fastest);
    loss +=
        over + kFar * over * over + kProportion * std::sqrt(squares / count - sum * sum / (count * count));
  }
  return loss / static_cast<double>(classes.size());
}

} // namespace

config::CostCoefficients fit(const std::vector<PricedClass> &classes, const config::CostCoefficients &start) {
  using Cost = config::CostCoefficients;
  config::CostCoefficients best = start;
  double least = lossOf(classes, best);
  constexpr double Cost::*kPrices[] = {
      &Cost::cacheGBs, &Cost::againGBs, &Cost::partialGBs, &Cost::wgmmaBlockGflops,
      &Cost::stepUs,   &Cost::itemUs,   &Cost::runUs,      &Cost::launchUs,
      &Cost::mergeUs,  &Cost::slotUs,   &Cost::lightStep,  &Cost::lightItem};
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
