#pragma once

#include "runtime/program/Program.h"
#include "runtime/tree/CachePlacement.h"
#include "tuner/regret/Regret.h"

#include <string>
#include <vector>

namespace deft::regret {

/// The trees on which configs are timed, and how.
struct TimingOptions {
  std::vector<std::string> params; ///< NAME=VALUE
  std::string recordsFolder;
  std::vector<std::string> families{"all", "rows"}; ///< whose trees have names
  int treesPerClass = 3;
  tree::PlacementOrder pages = tree::PlacementOrder::Scattered;
  bool isHeldOut = false; ///< trees that were not used for tuning
};

/// reportRegret() for the program's entries that the request wants, timed on this machine, which must be the
/// cache's device. It uses the named trees of tuning, or similar ones. The request's target is that of the
/// device.
support::Result<RegretReport> reportTimedRegret(const config_cache::ConfigCache &cache, RegretRequest request,
                                                const program::Program &program,
                                                const TimingOptions &options);

} // namespace deft::regret
