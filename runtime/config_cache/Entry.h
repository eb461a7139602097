#pragma once

#include "compiler/config/Config.h"
#include "compiler/support/Result.h"
#include "runtime/config_cache/DeviceKey.h"
#include "runtime/config_cache/Provenance.h"
#include "runtime/config_cache/TreeClass.h"
#include "runtime/config_cache/VariantSignature.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace deft::config_cache {

/// Times of the tuned and the untuned config, taken together.
struct Measurement {
  double tunedUs = 0;   ///< median on a GPU, fastest run on a CPU; of several trees the geometric mean
  double untunedUs = 0; ///< of the default config on the same trees
  double spread = 0;    ///< of tunedUs, relative: half the range between the quartiles, over the median
  int trees = 0;        ///< of the class that were measured

  double gain() const { return tunedUs > 0 ? untunedUs / tunedUs : 1; }
  bool operator==(const Measurement &) const = default;
};

/// Trees are alike up to this distance: a tenth of a doubling.
inline constexpr double kLikeness = 0.1;

/// From a tree that stands here to the nearest of others, in the dimension in which they differ most.
/// Infinite without others.
double distanceToNearest(const std::vector<Coordinates> &others, const Coordinates &tree);

/// What tuning found out for one variant and one class of trees.
struct Entry {
  VariantSignature signature;
  TreeClass treeClass;
  config::Config config;
  /// Nothing was clearly faster, so `config` is the untuned one.
  bool keepsDefault = false;
  /// False: the search ended because its time was over, and more of it may find something faster.
  bool isComplete = true;
  /// Not empty: what was tuned lost on other trees of the class, so it is for trees that are like one of
  /// these; the others keep the untuned choice.
  std::vector<Coordinates> onlyFor;
  double within = kLikeness; ///< how near to one of these; less where what was tuned lost that near
  Measurement measurement;
  Provenance provenance;

  /// Whether the config is for a tree that stands here, or so many times as far away; none: for a tree of
  /// which only the class is known.
  bool isFor(const std::optional<Coordinates> &tree, double slack = 1) const;
  /// Whether today's kernels of a device were timed.
  bool isFresh(DeviceKey::Kind device) const;
};

/// Entries are sorted and found by this: "q32-kv8-d128-bf16-p16nhd-plain c1-t14-q6-s3-d2-f0".
std::string keyOf(const Entry &entry);

nlohmann::json toJson(const Entry &entry);
/// Of a file for a device of this kind. Checks types and ranges; legality depends on a target and is checked
/// on selection. An unknown key, or a class of another version, is an error: what is not understood is not
/// used.
support::Result<Entry> entryFromJson(const nlohmann::json &json, DeviceKey::Kind device);

} // namespace deft::config_cache
