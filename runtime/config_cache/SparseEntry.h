#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"
#include "runtime/config_cache/Provenance.h"
#include "runtime/config_cache/VariantSignature.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace deft::config_cache {

/// How lists are best cut for so many queries that read them.
struct TimedCut {
  int queries = 0;
  int itemTokens = 0; ///< a multiple of the tile's tokens; 0: nothing was clearly faster than the rule's cut
  double tunedUs = 0; ///< median
  double untunedUs = 0; ///< with the rule's tile and cut
  double spread = 0;    ///< of tunedUs, relative: half the range between the quartiles, over the median

  bool operator==(const TimedCut &) const = default;
};

/// What tuning found out for the sparse layers of one variant and lists of one length, by one tile.
struct SparseEntry {
  VariantSignature signature;
  spec::SelectBy by = spec::SelectBy::KvHead;
  int budget = 0; ///< tokens of a list
  int tileKv = 0, stages = 0, warps = 0;
  bool isChosen = false;      ///< of several tiles, the rule's among them: kernels are compiled with this one
  std::vector<TimedCut> cuts; ///< by rising queries
  Provenance provenance;

  bool isOf(const spec::Variant &variant) const;
  bool isOf(const config::PhaseConfig &tile) const;
  /// Timed with today's kernels.
  bool isFresh() const;
  /// Of its cuts, as they are read now, over the rule's tile and cut: the geometric mean; 1 of none.
  double gain() const;
  bool operator==(const SparseEntry &) const = default;
};

/// Whether both are about the same lists, whatever the tile.
bool areOfSameLists(const SparseEntry &a, const SparseEntry &b);

/// Entries are sorted and found by this: "q32-kv8-d128-bf16-p16nhd-plain kv_head 4096 64x2x4".
std::string keyOf(const SparseEntry &entry);

nlohmann::json toJson(const SparseEntry &entry);
/// Checks types and ranges; an unknown key is an error: what is not understood is not used. Whether a tile is
/// legal depends on a target and is checked where it is asked for.
support::Result<SparseEntry> sparseEntryFromJson(const nlohmann::json &json);

/// `newer`, with those cuts of an older entry of its key that it lacks, if both were timed with the same
/// kernels.
SparseEntry withOlderCuts(SparseEntry newer, const SparseEntry &older);

} // namespace deft::config_cache
