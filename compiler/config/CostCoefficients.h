#pragma once

#include "compiler/support/Result.h"

#include <nlohmann/json_fwd.hpp>

namespace deft::config {

/// The prices by which the planner compares ways to cut the same work. Times add up, because the copies,
/// products and latencies of kernels overlap only in part. Each device has its own prices as data
/// (DevicePrices.h). The numbers here apply to config files without prices, so they never change: they are
/// those of an H200, with which configs were tuned before there were others. Rates exceed the machine's,
/// since part of that time is in the steps.
struct CostCoefficients {
  double cacheGBs = 8200;         ///< first reads of the cache: memory, whole machine
  double againGBs = 36000;        ///< repeated reads by other items: last-level cache, whole machine
  double partialGBs = 5800;       ///< partials, written and read back, whole machine
  double blockGflops = 1500;      ///< products of one block (CPU: thread), including padding
  double wgmmaBlockGflops = 8800; ///< the same for family sm90, which runs half as many blocks
  double stepUs = 0.335;          ///< each tile step, except its products: waits for copies, softmax
  double itemUs = 1.5;            ///< each item: index, queries and first tile, which nothing overlaps
  double runUs = 0.0285;          ///< each run of an item: copies that end where the next begins
  double maskUs = 0;              ///< extra for a step whose rows, one padded group, have no token in common
  double launchUs = 7.15;         ///< the launch, including the first bytes
  double mergeUs = 1.6;           ///< the merge launch, if there is one
  double slotUs = 0.06;           ///< extra for each partial from the ninth on, of the query with the most
  double lightStep = 1.7;         ///< step_us of a light block over a wide one's: two share a multiprocessor
  double lightItem = 0.5;         ///< item_us, likewise: the other block works in the meantime
  double keyUs = 0.55;            ///< extra for a step whose keys a hook makes on a GPU
  double dealtKeys = 0.4;         ///< key_us of a dealt tile over another's: no warp waits for others' keys
  double turnStep = 0.5;          ///< share of a step saved if a common tile and a dealt tile alternate
  /// An extra share of the time when whole plans are compared and one of them merges: some plans with
  /// partials that were up to 3 % cheaper by the model took 7 to 14 % longer
  /// (docs/kernels.md#near-ties).
  double mergedShare = 0.05;
  // For the length of chunks (plan::chooseChunkTokens), which is chosen before there are items to price, so
  // these are rougher: all tiles cost the same. They suit an H200, and entries were tuned with them, so all
  // devices, also processors, begin with them. `deftc tune --calibrate` moves each with the prices above that
  // it stands for.
  double chunkTokenUs = 0.015;   ///< a token of an item: its read and its share of a step
  double chunkItemUs = 0.72;     ///< one more item of a block: index, queries and first tile
  double chunkMergeUs = 1.44;    ///< the merge, if there are partials
  double chunkPartialGBs = 3000; ///< partials, 4 bytes a value, written and read back, whole machine
  double latentTokenUs = 0.03;   ///< a token of a latent cache: steps of 64 take 1.9 us (family sm90_latent)
  double latentItemUs = 3;       ///< an item there: twice item_us, as its queries are longer
  /// Making and merging unions of lists that a caller hands over. Derived from an H200's times of 16 and of
  /// 64 unions of four lists of 2,048 tokens: 40 and 44 us (tests/gpu/records/h200-latent-lists.json).
  double unionUs = 42;
  /// A GPU's last-level cache, in units of 10^6 bytes: that of an H100 and an H200. Others have 40 MB or
  /// more.
  double lastLevelMB = 50;
  int rowStep = 0;   ///< rows are padded to a multiple of this; 0: to the phase's tile_q
  int tokenStep = 0; ///< tokens of a step; 0: the phase's tile_kv

  bool operator==(const CostCoefficients &) const = default;
};

nlohmann::json toJson(const CostCoefficients &coefficients);

/// Absent members keep their defaults, except prices that did not exist when files without them were written:
/// these become 0. An unknown member, or a number that checkCost refuses, is an error.
support::Result<CostCoefficients> costFromJson(const nlohmann::json &json);

/// Checks that all prices are in ranges that allow to add and compare times; names the first that is not.
support::Result<void> checkCost(const CostCoefficients &cost);

} // namespace deft::config
