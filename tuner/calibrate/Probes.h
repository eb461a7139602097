#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"
#include "runtime/tree/KvTree.h"

#include <string>
#include <vector>

namespace deft::calibrate {

/// A tree so small that several runs take almost no time.
struct ProbeTree {
  std::string name; ///< in the syntax of workload::make()
  tree::KvTree tree;
  /// Whether to time its plans by configs outside the choices as well: trees with shared and unshared tokens.
  bool isCutOtherwise = false;
};

/// Trees whose plans differ in their costs: bytes read once or repeatedly, products, items, partials,
/// launches.
support::Result<std::vector<ProbeTree>> probeTrees(config::DeviceKind device);

struct ProbeConfig {
  config::Config config;
  /// Whether the untuned choice may be this config. Otherwise it only divides trees in other ways
  /// (ProbeTree::isCutOtherwise), to fit prices that a single partition never pays.
  bool isChoice = false;
};

/// The untuned configs, and some other ways to divide each tree.
std::vector<ProbeConfig> probeConfigs(const std::vector<config::Config> &untuned, config::DeviceKind device);

} // namespace deft::calibrate
