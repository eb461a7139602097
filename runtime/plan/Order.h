#pragma once

#include "compiler/config/Config.h"
#include "runtime/plan/Plan.h"

#include <cstdint>
#include <vector>

namespace deft::plan {

/// Puts the runs of items in another order than the path's (config::Order). Kept between plans for its
/// memory.
class RunOrder {
public:
  /// `plan` has its runs in path order. Items that read tokens in turn do so for the tree as it is: where a
  /// leaf of theirs has grown, it is time for a new plan.
  void apply(const config::Config &config, int ratio, Plan &plan);

private:
  struct Shares { ///< of an item's tokens: those that many rows see, and few
    std::int64_t many = 0, few = 0;
    bool areBoth() const { return many > 0 && few > 0; }
  };
  void mix(const config::Config &config, int ratio, Plan &plan);
  abi::Run *mixItem(const abi::Item &item, const Shares &shares, const config::PhaseConfig &phase, int ratio,
                    const abi::Run *from, abi::Run *to);

  std::vector<Shares> shares_;  ///< of each item
  std::vector<int> sorted_;     ///< an item's runs by whose they are, at least as many as are wanted
  std::vector<int> moved_;      ///< of each item: how far its runs have moved
  std::vector<abi::Run> mixed_; ///< at least as many as are wanted
};

} // namespace deft::plan
