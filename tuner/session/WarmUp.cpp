#include "tuner/session/WarmUp.h"

#include "runtime/config_cache/LargeTrees.h"
#include "tuner/search/TypicalKernels.h"

#include <algorithm>

namespace deft::session {

std::vector<config::Config> firstConfigs(const std::vector<config::Config> &untuned,
                                         std::span<const Related> ofClasses, const space::Space &space) {
  std::vector<config::Config> configs = config_cache::usualOf(untuned);
  bool isSearched = false;
  for (const Related &related : ofClasses) {
    for (const auto *known : {&related.ofClass, &related.neighbours})
      configs.insert(configs.end(), known->begin(), known->end());
    isSearched = isSearched || !related.isKnown;
  }
  for (std::size_t shape = 0; isSearched && shape < space.shapes().size(); ++shape)
    for (const space::Point &kernels : search::typicalKernels(space, static_cast<int>(shape)))
      configs.push_back(space.configOf(kernels));
  return configs;
}

void warmUp(CompilePool &compilers, const std::vector<config::Config> &configs,
            std::chrono::steady_clock::time_point end, const std::function<bool(int left)> &tell) {
  compilers.ahead(configs);
  const auto left = [&] {
    return static_cast<int>(std::count_if(configs.begin(), configs.end(), [&](const config::Config &config) {
      return !compilers.has(config);
    }));
  };
  while (left() > 0 && std::chrono::steady_clock::now() < end && tell(left())) {
    constexpr double kLookAgain = 0.2;
    compilers.wait(kLookAgain);
  }
}

double warmUpSeconds(double budgetSeconds) {
  constexpr double kShare = 0.2, kMostSeconds = 30;
  return budgetSeconds > 0 ? std::min(kShare * budgetSeconds, kMostSeconds) : kMostSeconds;
}

} // namespace deft::session
