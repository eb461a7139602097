#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"
#include "runtime/tree/KvTree.h"

#include <string>
#include <vector>

namespace deft::calibrate {

/// A tree small enough that some runs of it take next to nothing.
struct ProbeTree {
  std::string name; ///< as workload::make() takes it
  tree::KvTree tree;
  /// Whether plans of it are timed by configs that are not chosen from, too: trees of what many see and few.
  bool isCutOtherwise = false;
};

/// Trees that differ in what their plans pay for: bytes read once and again, products, items, partials,
/// launches.
support::Result<std::vector<ProbeTree>> probeTrees(config::DeviceKind device);

struct ProbeConfig {
  config::Config config;
  /// Of those among which the untuned choice is made; else it cuts trees otherwise
  /// (ProbeTree::isCutOtherwise), so that prices that one partition never pays are fitted, too.
  bool isChoice = false;
};

/// Of the untuned configs: they themselves, and on each tree's own terms some other ways to cut it.
std::vector<ProbeConfig> probeConfigs(const std::vector<config::Config> &untuned, config::DeviceKind device);

} // namespace deft::calibrate
