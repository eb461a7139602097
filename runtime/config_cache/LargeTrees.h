#pragma once

#include "compiler/config/Config.h"

#include <vector>

namespace deft::config_cache {

/// Rows of the largest tiles that are weighed for every tree.
constexpr int kUsualRows = 128;

/// Whether a config, by its rows, is weighed only for trees that take long by the others, and that have
/// tokens whose readers fill it.
inline bool isForLargeTrees(const config::Config &config) { return config::mostRows(config) > kUsualRows; }

/// The first of the untuned configs, and the others that are weighed for every tree.
inline std::vector<config::Config> usualOf(const std::vector<config::Config> &untuned) {
  std::vector<config::Config> usual;
  for (const config::Config &config : untuned)
    if (usual.empty() || !isForLargeTrees(config))
      usual.push_back(config);
  return usual;
}

} // namespace deft::config_cache
