#pragma once

#include "compiler/config/Config.h"

#include <algorithm>

namespace deft::api {

/// Keeps only the widest phase: the order of a row's sums is then independent of other rows.
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
