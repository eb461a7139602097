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

/// Times of the tuned and of the untuned config, measured together.
struct Measurement {
  double tunedUs = 0;   ///< median on a GPU, fastest run on a CPU; geometric mean over several trees
  double untunedUs = 0; ///< of the default config on the same trees
  double spread = 0;    ///< of tunedUs, relative: half the range between the quartiles, over the median
  int trees = 0;        ///< trees of the class that were measured

  double gain() const { return tunedUs > 0 ? untunedUs / tunedUs : 1; }
  bool operator==(const Measurement &) const = default;
};

/// Trees count as similar up to this distance: a tenth of a doubling.
inline constexpr double kLikeness = 0.1;

/// The distance from a tree to the nearest of others, in the dimension with the largest difference. Infinite
/// if there are no others.
double distanceToNearest(const std::vector<Coordinates> &others, const Coordinates &tree);

/// The result of tuning for one variant and one class of trees.
struct Entry {
  VariantSignature signature;
  TreeClass treeClass;
  config::Config config;
  /// Nothing was clearly faster: `config` is the untuned one.
  bool keepsDefault = false;
  /// False: the search ran out of time, and might have found something faster.
  bool isComplete = true;
  /// If not empty, the tuned config lost on other trees of the class. So it applies only to trees that are
  /// similar to one of these; other trees keep the untuned choice.
  std::vector<Coordinates> onlyFor;
  double within = kLikeness; ///< the distance that counts as similar; less if the tuned config lost nearby
  Measurement measurement;
  Provenance provenance;

  /// Whether the config applies to a tree with these coordinates, or within `slack` times the distance; none:
  /// only the class of the tree is known.
  bool isFor(const std::optional<Coordinates> &tree, double slack = 1) const;
  /// Whether the times are of today's kernels for the device.
  bool isFresh(DeviceKey::Kind device) const;
};

/// The key by which entries are sorted and found: "q32-kv8-d128-bf16-p16nhd-plain c1-t14-q6-s3-d2-f0".
std::string keyOf(const Entry &entry);

nlohmann::json toJson(const Entry &entry);
/// Reads an entry of a file for this kind of device. Checks types and ranges; legality depends on a target,
/// so the selection checks it. An unknown key, or a class of another version, is an error, so that only
/// entries that are understood are used.
support::Result<Entry> entryFromJson(const nlohmann::json &json, DeviceKey::Kind device);

} // namespace deft::config_cache
