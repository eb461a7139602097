#pragma once

#include "compiler/config/Config.h"

#include <algorithm>

namespace deft::api {

/// With the widest phase alone: a row's sums then run in the same order whatever other rows there are.
inline config::Config withWidestPhase(config::Config config) {
  const auto isNarrower = [](const config::PhaseConfig &a, const config::PhaseConfig &b) {
    return a.tileQ < b.tileQ;
  };
  config::PhaseConfig widest = *std::max_element(config.phases.begin(), config.phases.end(), isNarrower);
  widest.rowsAbove = -1;
  config.phases = {std::move(widest)};
  return config;
}

} // namespace deft::api
