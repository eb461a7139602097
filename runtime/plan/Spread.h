#pragma once

#include "compiler/config/Config.h"
#include "compiler/kernels/Family.h"
#include "runtime/plan/CostModel.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/VariantFacts.h"

#include <span>
#include <vector>

namespace deft::plan {

/// Whether blocks of such a plan live for the whole launch: block b of n takes units b, b + n, ... A unit is
/// an item for one KV head, and an item's heads follow each other. Then the order of items alone decides how
/// much work each block gets.
bool hasLastingBlocks(const config::Config &config, kernels::Families families = kernels::families());

/// Places items so that such blocks get about equal work. Heaviest first, the first block would get the
/// longest item of each round. Keep the object between plans to reuse its memory.
class ItemSpread {
public:
  /// If blocks have less work than this, their items are not worth the time that it takes to spread them, for
  /// some percent in each layer of a step.
  static constexpr double kLeastUs = 8;
  /// Another order must save this share of the busiest block's work.
  static constexpr double kLeastSaved = 0.02;

  /// The work of the busiest block in the order that is found for these prices: that of the items themselves,
  /// unless another one saves enough.
  double find(std::span<const double> us, int kvHeads, int blocks);
  /// For each place of that order: the index of its item. Empty: items stay where they are.
  std::span<const int> order() const { return order_; }

  /// find() for the prices of a plan's items. 0: the plan has several phases or none.
  double find(const CostModel &model, int kvHeads, int blocks, const Plan &plan);
  /// Moves the items into the order that was found.
  void apply(Plan &plan);

private:
  struct Column { ///< the places whose items begin at a group of blocks
    double us;    ///< the most work of its groups, when it was last seen
    int group;    ///< the first one
  };
  void place(std::span<const double> us, int kvHeads, int blocks);

  std::vector<double> prices_; ///< of a plan's items
  std::vector<double> loads_;
  std::vector<Column> heap_; ///< that have places left, least work first
  std::vector<int> places_;  ///< the next one of each column
  std::vector<int> byPrice_, order_, placed_;
  std::vector<abi::Item> items_;
};

} // namespace deft::plan
