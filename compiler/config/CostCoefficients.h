#pragma once

#include "compiler/support/Result.h"

#include <nlohmann/json_fwd.hpp>

namespace deft::config {

/// The prices by which the planner compares two ways to cut the same work. Times add up, because the
/// kernels' copies, products and latencies overlap only in part. What a device's prices are is data
/// (DevicePrices.h). The numbers here are what a config's file means that says no prices, so they stay as
/// they are: those of an H200, by which configs were tuned before there were others. Rates lie above the
/// machine's, because part of that time is in the steps, too.
struct CostCoefficients {
  double cacheGBs = 8200;         ///< cache read for the first time: memory, whole machine
  double againGBs = 36000;        ///< cache read again by another item: last-level cache, whole machine
  double partialGBs = 5800;       ///< partials, written and read again, whole machine
  double blockGflops = 1500;      ///< products of one block (CPU: thread), padding included
  double wgmmaBlockGflops = 8800; ///< the same for the sm90 family, which runs half as many blocks
  double stepUs = 0.335;          ///< of each tile step beside its products: copies awaited, softmax
  double itemUs = 1.5;            ///< of each item: index, queries and first tile, with nothing to hide them
  double runUs = 0.0285;          ///< of each run of an item: copies that end where another begins
  double maskUs = 0;              ///< more, of a step whose rows, one padded group, have no token in common
  double launchUs = 7.15;         ///< also of the first bytes
  double mergeUs = 1.6;           ///< the merge launch, where there is one
  double slotUs = 0.06;           ///< more, of each partial of the query that has most, from the ninth on
  double lightStep = 1.7;         ///< step_us of a light block over a wide one's: two share a multiprocessor
  double lightItem = 0.5;         ///< item_us, the same: the other block is at work meanwhile
  double keyUs = 0.55;            ///< more, of a step whose keys a hook makes on a GPU
  double turnStep = 0.5; ///< of a step, saved where a tile of many rows' tokens and a dealt one take turns
  /// Of a plan's time, more that counts where whole plans are compared and something is merged: of plans that
  /// were up to 3 % cheaper by the model with partials, some took 7 to 14 % longer
  /// (docs/kernels.md#near-ties).
  double mergedShare = 0.05;
  int rowStep = 0;   ///< rows are padded to a multiple of this; 0: to the phase's tile_q
  int tokenStep = 0; ///< a step takes this many tokens; 0: the phase's tile_kv

  bool operator==(const CostCoefficients &) const = default;
};

nlohmann::json toJson(const CostCoefficients &coefficients);

/// Absent members keep their defaults, except prices that did not exist when files without them were written:
/// these are 0. An unknown member, or a number that checkCost refuses, is an error.
support::Result<CostCoefficients> costFromJson(const nlohmann::json &json);

/// Whether all prices are in ranges in which times can be added up and compared; names the first that is not.
support::Result<void> checkCost(const CostCoefficients &cost);

} // namespace deft::config
