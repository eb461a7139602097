#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"
#include "runtime/config_cache/Provenance.h"
#include "runtime/config_cache/VariantSignature.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace deft::config_cache {

/// The best cut of lists for a number of queries that read them.
struct TimedCut {
  int queries = 0;
  int itemTokens = 0; ///< a multiple of the tile's tokens; 0: nothing was clearly faster than the rule's cut
  double tunedUs = 0; ///< median
  double untunedUs = 0; ///< with the rule's tile and cut
  double spread = 0;    ///< of tunedUs, relative: half the range between the quartiles, over the median

  bool operator==(const TimedCut &) const = default;
};

/// The result of tuning for the sparse layers of one variant with lists of one length, with one tile.
struct SparseEntry {
  VariantSignature signature;
  spec::SelectBy by = spec::SelectBy::KvHead;
  int budget = 0; ///< tokens of a list
  int tileKv = 0, stages = 0, warps = 0;
  bool isChosen = false;      ///< the chosen one of several tiles, with which kernels are compiled
  std::vector<TimedCut> cuts; ///< by rising queries
  Provenance provenance;

  bool isOf(const spec::Variant &variant) const;
  bool isOf(const config::PhaseConfig &tile) const;
  /// Whether the times are of today's kernels.
  bool isFresh() const;
  /// The gain of its cuts over the rule's tile and cut: the geometric mean; 1 without cuts.
  double gain() const;
  bool operator==(const SparseEntry &) const = default;
};

/// Whether both are for the same lists, with any tiles.
bool areOfSameLists(const SparseEntry &a, const SparseEntry &b);

/// The key by which entries are sorted and found: "q32-kv8-d128-bf16-p16nhd-plain kv_head 4096 64x2x4".
std::string keyOf(const SparseEntry &entry);

nlohmann::json toJson(const SparseEntry &entry);
/// Checks types and ranges. An unknown key is an error, so that only entries that are understood are used.
/// The legality of a tile depends on a target, so code that uses the tile checks it.
support::Result<SparseEntry> sparseEntryFromJson(const nlohmann::json &json);

/// `newer`, plus the cuts of an older entry with the same key that it lacks, if the times of both are of the
/// same kernels.
SparseEntry withOlderCuts(SparseEntry newer, const SparseEntry &older);

} // namespace deft::config_cache
