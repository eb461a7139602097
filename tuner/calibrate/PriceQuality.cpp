#include "tuner/calibrate/PriceQuality.h"

#include "tuner/measure/Samples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace deft::calibrate {

PriceQuality qualityOf(std::span<const PricedProbe> probes) {
  struct Choice {
    double leastRank = 0, chosenUs = 0, fastestUs = 0;
    int count = 0;
  };
  std::vector<double> errors;
  std::map<std::size_t, Choice> choices; // for each tree
  for (const PricedProbe &probe : probes) {
    errors.push_back(std::expm1(std::abs(std::log(probe.priceUs / probe.us))));
    if (!probe.isChoice)
      continue;
    Choice &choice = choices[probe.tree];
    if (choice.count == 0 || probe.rank < choice.leastRank) {
      choice.leastRank = probe.rank;
      choice.chosenUs = probe.us;
    }
    choice.fastestUs = choice.count == 0 ? probe.us : std::min(choice.fastestUs, probe.us);
    ++choice.count;
  }
  PriceQuality quality;
  quality.medianError = measure::median(errors);
  quality.worstError = *std::max_element(errors.begin(), errors.end());
  double logs = 0;
  for (const auto &[tree, choice] : choices)
    if (choice.count > 1) {
      ++quality.trees;
      logs += std::log(choice.chosenUs / choice.fastestUs);
      quality.worstRegret = std::max(quality.worstRegret, choice.chosenUs / choice.fastestUs - 1);
    }
  quality.meanRegret = quality.trees > 0 ? std::expm1(logs / quality.trees) : 0;
  return quality;
}

} // namespace deft::calibrate
