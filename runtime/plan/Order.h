#pragma once

#include "compiler/config/Config.h"
#include "runtime/plan/Plan.h"

#include <vector>

namespace deft::plan {

/// Puts the runs of items in another order than the path's (config::Order). Kept between plans for its
/// memory.
class RunOrder {
public:
  /// `plan` has its runs in path order. Mixed ones are for the tree as it is: where a leaf grew, tiles would
  /// have tokens of both kinds, so that each step needs a new plan.
  void apply(const config::Config &config, int ratio, Plan &plan);

private:
  void mix(const config::Config &config, int ratio, Plan &plan);

  std::vector<abi::Run> mixed_;
};

} // namespace deft::plan
