#pragma once

#include "compiler/config/Config.h"

#include <vector>

namespace deft::config_cache {

/// The most rows of tiles that are considered for every tree.
constexpr int kUsualRows = 128;

/// Whether a config has more rows than that. It is then considered only for trees that take long with the
/// others and that have tokens with enough readers to fill its tiles.
inline bool isForLargeTrees(const config::Config &config) { return config::mostRows(config) > kUsualRows; }

/// The first untuned config, and the others that are considered for every tree.
inline std::vector<config::Config> usualOf(const std::vector<config::Config> &untuned) {
  std::vector<config::Config> usual;
  for (const config::Config &config : untuned)
    if (usual.empty() || !isForLargeTrees(config))
      usual.push_back(config);
  return usual;
}

} // namespace deft::config_cache
