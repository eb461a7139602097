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

/// What a plan costs by the model, of one layer.
struct PlanCost {
  double cacheBytes = 0;   ///< read for the first time
  double againBytes = 0;   ///< read again by another item
  double queryBytes = 0;   ///< queries read, outputs written
  double partialBytes = 0; ///< written, and read by the merge
  double paddedGflop = 0;  ///< products that the tiles do, padding of rows and tokens included
  double usefulGflop = 0;  ///< products that the tree asks for
  std::int64_t units = 0;  ///< items started, each once a KV head
  double blockUs = 0;      ///< the mean over the blocks of what they compute
  double longestUs = 0;    ///< the longest item
  double fullestUs = 0;    ///< of the block that has most to do
  double workUs = 0;       ///< all of it spread evenly: what greedy makes small
  double microseconds = 0; ///< workUs, but as long as the fullest block takes, and the launches
};

/// What a plan's price follows from.
struct PlanWork {
  double itemTokens = 0; ///< of all items
  std::int64_t readTokens = 0;
  int queries = 0;
  std::int64_t partialSlots = 0;
  bool isMerged = false;             ///< there is a merge launch
  int mostSlots = 0;                 ///< of the query that has most
  double blockUs = 0, fullestUs = 0; ///< as PlanCost has them
};

/// Prices of one variant under one config on a machine of so many blocks. Plain sums: linear in items, no
/// allocation once it has seen tiles of the size.
class CostModel {
public:
  /// By the config's own prices, by which its plans are made, or by others.
  void set(const VariantFacts &facts, const config::Config &config, int blocks,
           kernels::Families families = kernels::families()) {
    set(facts, config, config.cost, blocks, families);
  }
  void set(const VariantFacts &facts, const config::Config &config, const config::CostCoefficients &cost,
           int blocks, kernels::Families families = kernels::families());

  PlanCost estimate(const Plan &plan) const;
  /// Of one item, for one KV head, on the block that has it.
  double unitUs(const Plan &plan, const abi::Item &item) const;
  /// PlanCost::microseconds. Whatever is less in `work` is no more in this.
  double microsecondsOf(const PlanWork &work) const;

  // For bounds of plans that are not made: what is certain of an item of so many queries at most, one KV
  // head.
  /// Of an item whose runs are these, at least.
  double leastUnitUs(std::span<const Segment> runs, int tokens) const;
  /// Of an item of so many queries that all see all of its tokens.
  double leastUnitUs(int queries, int tokens) const {
    const Step &step = steps_[static_cast<std::size_t>(queries)];
    const int steps = (tokens + step.tokens - 1) / step.tokens;
    return step.itemUs + cost_.runUs + steps * step.us;
  }
  /// Of each item.
  double leastItemUs(int queries) const { return least_[static_cast<std::size_t>(queries)].itemUs; }
  /// Of each token.
  double leastTokenUs(int queries) const { return least_[static_cast<std::size_t>(queries)].tokenUs; }
  double leastPairUs() const { return pairTokenUs_; } ///< of each token and query that reads it
  /// Of each token that so many queries read, in however many tiles.
  double leastCoverUs(std::int64_t queries) const;
  double runUs() const { return cost_.runUs; }
  double mergedShare() const { return cost_.mergedShare; }
  double share() const { return share_; }
  bool hasGroups() const { return hasGroups_; } ///< some tokens may be passed over by half of the warps

  int queriesPerTile() const { return queriesPerTile_; }
  int tokenStep(int queries) const { return steps_[static_cast<std::size_t>(queries)].tokens; }
  // Microseconds of a tile of so many queries (at most queriesPerTile()), all KV heads, spread over the
  // blocks:
  double stepUs(int queries) const { return steps_[static_cast<std::size_t>(queries)].us * share_; }
  double itemUs() const { return steps_.back().itemUs * share_; }
  double againUs() const { return tokenBytes_ / (cost_.againGBs * 1e3); }    ///< of one token read again
  double partialUs() const { return slotBytes_ / (cost_.partialGBs * 1e3); } ///< of one query's partial

private:
  struct Step { ///< of a tile with so many queries, one KV head
    double us = 0;
    double itemUs = 0; ///< of the item that it is in
    double keyUs = 0;  ///< of us, what its keys take that are made
    double gflop = 0;
    int tokens = 0;
    int firstGroup = 0;  ///< two groups of warps have rows of their own: queries below are of the first
    int secondGroup = 0; ///< and from here on of the second
  };

  struct Least { ///< of tiles of so many queries or fewer
    double itemUs = 0;
    double tokenUs = 0;
  };

  void findLeast();
  double memoryUsOf(const PlanWork &work) const;
  /// Steps of the group of warps that has most: what nobody of a group sees is passed over.
  int stepsOf(const Plan &plan, const abi::Item &item, const Step &step) const;
  /// Steps that are saved where tiles that many rows see and dealt ones are read in turn: one copies while
  /// the other computes.
  double savedSteps(const abi::Item &item, const Step &step) const;
  /// The tokens of an item whose rows are one padded group and have none in common; of others 0.
  double maskedTokens(const Plan &plan, const abi::Item &item) const;

  config::CostCoefficients cost_;
  int ratio_ = 1, queriesPerTile_ = 1;
  double share_ = 1; ///< KV heads over blocks
  double kvHeads_ = 1;
  int blocks_ = 1;
  double tokenBytes_ = 0;    ///< K and V of all KV heads
  double slotBytes_ = 0;     ///< a query's partial of all heads, written and read
  double outputBytes_ = 0;   ///< a query in and its output, all heads
  double pairGflop_ = 0;     ///< both products of one row and one token
  std::vector<Step> steps_;  ///< by queries in the tile
  std::vector<Least> least_; ///< likewise
  double pairTokenUs_ = 0;   ///< of a token and a query in the tile that is best at it
  bool hasGroups_ = false;
};

/// What counts where whole plans are compared, of a price for one: near a tie nothing is merged.
inline double rankOf(double us, const config::CostCoefficients &cost, const Plan &plan) {
  return us * (plan.partialSlots > 0 ? 1 + cost.mergedShare : 1);
}

} // namespace deft::plan
