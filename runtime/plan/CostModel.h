#pragma once

#include "compiler/config/Config.h"
#include "compiler/config/CostCoefficients.h"
#include "compiler/kernels/Family.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/TreeView.h"
#include "runtime/plan/VariantFacts.h"

#include <cstdint>
#include <span>
#include <vector>

namespace deft::plan {

/// The cost of a plan by the model, for one layer.
struct PlanCost {
  double cacheBytes = 0;   ///< first reads of tokens
  double againBytes = 0;   ///< repeated reads by other items
  double queryBytes = 0;   ///< queries read, outputs written
  double partialBytes = 0; ///< partials written, and read by the merge
  double paddedGflop = 0;  ///< work of the tiles, with padded rows and tokens
  double usefulGflop = 0;  ///< work that the tree needs
  std::int64_t units = 0;  ///< items started, counted for each KV head
  double blockUs = 0;      ///< average work of a block
  double longestUs = 0;    ///< work of the longest item
  double fullestUs = 0;    ///< work of the busiest block
  double workUs = 0;       ///< all work, spread evenly; greedy minimises it
  double microseconds = 0; ///< workUs, with the busiest block's work and the launches

  /// What binds the blocks: it is in `microseconds`.
  double blocksUs() const { return blockUs > fullestUs ? blockUs : fullestUs; }
  /// `microseconds`, if the busiest block had this work.
  double withFullest(double us) const { return microseconds - blocksUs() + (blockUs > us ? blockUs : us); }
};

/// The counts from which the model computes a plan's price.
struct PlanWork {
  double itemTokens = 0; ///< sum over all items
  std::int64_t readTokens = 0;
  int queries = 0;
  std::int64_t partialSlots = 0;
  bool isMerged = false;             ///< the plan needs a merge launch
  int mostSlots = 0;                 ///< most partials that one query has
  double blockUs = 0, fullestUs = 0; ///< as in PlanCost
};

/// The work of the busiest of `blocks` blocks: block b takes units b, b + blocks, ... A unit is an item for
/// one KV head. `us` has the price of each item, in the order of the launch. `loads` is scratch memory.
double busiestUs(std::span<const double> us, int kvHeads, int blocks, std::vector<double> &loads);

/// Prices of one variant under one config on a machine with a given number of blocks. Time is linear in
/// items. It allocates only when tiles are larger than any before, and for plans whose items are spread.
class CostModel {
public:
  /// Sets the prices: those of the config, which its plans are made with, or other ones.
  void set(const VariantFacts &facts, const config::Config &config, int blocks,
           kernels::Families families = kernels::families()) {
    set(facts, config, config.cost, blocks, families);
  }
  void set(const VariantFacts &facts, const config::Config &config, const config::CostCoefficients &cost,
           int blocks, kernels::Families families = kernels::families());

  PlanCost estimate(const Plan &plan) const;
  /// The time of one item for one KV head, on the block that runs it.
  double unitUs(const Plan &plan, const abi::Item &item) const;
  /// PlanCost::microseconds. If no count in `work` grows, the result does not grow.
  double microsecondsOf(const PlanWork &work) const;

  // Lower bounds for plans that are not made yet, for one KV head. `queries` is the most queries that an item
  // has.
  /// A lower bound for an item with these runs.
  double leastUnitUs(std::span<const Segment> runs, int tokens) const;
  /// For an item in which every query sees every token.
  double leastUnitUs(int queries, int tokens) const {
    const Step &step = steps_[static_cast<std::size_t>(queries)];
    const int steps = (tokens + step.tokens - 1) / step.tokens;
    return step.itemUs + cost_.runUs + steps * step.us;
  }
  /// The start of an item of so many queries, and one of its tokens, of steps that are full.
  double startUs(int queries) const { return steps_[static_cast<std::size_t>(queries)].itemUs; }
  double tokenUs(int queries) const {
    const Step &step = steps_[static_cast<std::size_t>(queries)];
    return step.us / step.tokens;
  }
  /// A lower bound for each item.
  double leastItemUs(int queries) const { return least_[static_cast<std::size_t>(queries)].itemUs; }
  /// A lower bound for each token.
  double leastTokenUs(int queries) const { return least_[static_cast<std::size_t>(queries)].tokenUs; }
  double leastPairUs() const { return pairTokenUs_; } ///< for each pair of a token and a query that sees it
  /// A lower bound for each token that so many queries read, however they are split into tiles.
  double leastCoverUs(std::int64_t queries) const;
  double runUs() const { return cost_.runUs; }
  double mergedShare() const { return cost_.mergedShare; }
  double share() const { return share_; }
  bool hasGroups() const { return hasGroups_; } ///< half of the warps may skip some tokens

  int queriesPerTile() const { return queriesPerTile_; }
  int tokenStep(int queries) const { return steps_[static_cast<std::size_t>(queries)].tokens; }
  // Microseconds of a tile of `queries` queries (at most queriesPerTile()), summed over KV heads and spread
  // over all blocks:
  double stepUs(int queries) const { return steps_[static_cast<std::size_t>(queries)].us * share_; }
  double itemUs() const { return steps_.back().itemUs * share_; }
  double readUs() const { return tokenBytes_ / (cost_.cacheGBs * 1e3); }     ///< a token's first read
  double againUs() const { return tokenBytes_ / (cost_.againGBs * 1e3); }    ///< a token's repeated read
  double partialUs() const { return slotBytes_ / (cost_.partialGBs * 1e3); } ///< for each query's partial

private:
  struct Step { ///< costs of one step of a tile with so many queries, for one KV head
    double us = 0;
    double itemUs = 0; ///< start of the item that the tile is in
    double keyUs = 0;  ///< part of `us`: making keys with a hook
    double gflop = 0;
    int tokens = 0;
    int firstGroup = 0;  ///< if two groups of warps have rows of their own: the first has queries below this
    int secondGroup = 0; ///< and the second has queries from here on
  };

  struct Least { ///< lower bounds over tiles of so many queries or fewer
    double itemUs = 0;
    double tokenUs = 0;
  };

  void findLeast();
  double memoryUsOf(const PlanWork &work) const;
  /// The work of the busiest block of a launch of these items in their order.
  double busiestUs(const Plan &plan, const Plan::Phase &phase) const;
  /// Steps of the busiest group of warps: a group skips steps in which its rows see nothing.
  int stepsOf(const Plan &plan, const abi::Item &item, const Step &step) const;
  /// Steps saved if common tiles, which many rows see, alternate with dealt tiles: one kind is copied while
  /// the other is computed.
  double savedSteps(const abi::Item &item, const Step &step) const;
  /// The item's tokens if its rows fit one padded group and no run is seen by all of them; else 0.
  double maskedTokens(const Plan &plan, const abi::Item &item) const;

  config::CostCoefficients cost_;
  int ratio_ = 1, queriesPerTile_ = 1;
  double share_ = 1; ///< KV heads over blocks
  double kvHeads_ = 1;
  int blocks_ = 1;
  double tokenBytes_ = 0;    ///< K and V of one token, all KV heads
  double slotBytes_ = 0;     ///< one query's partial, all heads, written and read
  double outputBytes_ = 0;   ///< one query's q and output, all heads
  double pairGflop_ = 0;     ///< both products of one row and one token
  std::vector<Step> steps_;  ///< by the number of queries in the tile
  std::vector<Least> least_; ///< likewise
  double pairTokenUs_ = 0;   ///< one token and one query, in the tile that is cheapest for it
  bool hasGroups_ = false;
};

/// The number by which whole plans are compared. A plan that merges pays extra, so near a tie the other wins.
inline double rankOf(double us, const config::CostCoefficients &cost, const Plan &plan) {
  return us * (plan.partialSlots > 0 ? 1 + cost.mergedShare : 1);
}

} // namespace deft::plan
