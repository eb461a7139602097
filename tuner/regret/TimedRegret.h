#pragma once

#include "runtime/program/Program.h"
#include "runtime/tree/CachePlacement.h"
#include "tuner/regret/Regret.h"

#include <string>
#include <vector>

namespace deft::regret {

/// On which trees and how configs are timed.
struct TimingOptions {
  std::vector<std::string> params; ///< NAME=VALUE
  std::string recordsFolder;
  std::vector<std::string> families{"all", "rows"}; ///< whose trees are known by name
  int treesPerClass = 3;
  tree::PlacementOrder pages = tree::PlacementOrder::Scattered;
  bool isHeldOut = false; ///< trees that nobody tuned on
};

/// As reportRegret() of the program's entries, of those that the request wants, timed on this machine, which
/// must be the cache's device: on trees that tuning knows by name, or on others like them. The request's
/// target is that device's.
support::Result<RegretReport> reportTimedRegret(const config_cache::ConfigCache &cache, RegretRequest request,
                                                const program::Program &program,
                                                const TimingOptions &options);

} // namespace deft::regret
