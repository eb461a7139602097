#pragma once

#include "tools/deftc/common/DeviceInput.h"
#include "tools/deftc/common/TreeInput.h"

#include <string>
#include <vector>

namespace deft::cli {

inline constexpr int kMostPlanBlocks = 1 << 20; ///< far above any machine; a plan tells the load of each

/// What a user asks of `deftc plan`.
struct PlanOptions {
  std::string input, variant, partition, as, output, arch, config;
  std::vector<std::string> params;
  std::vector<std::string> against; ///< NAME=VALUE, as a second plan differs
  TreeOptions tree;
  DeviceOptions device;
  int chunk = -1; ///< -1: as the config says
  int blocks = 0; ///< 0: as the device says
};

} // namespace deft::cli
