#include "runtime/config_cache/Entry.h"

#include "compiler/config/ConfigJson.h"
#include "runtime/tree/StrictJson.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace deft::config_cache {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error wrong(const std::string &what) { return {ErrorCode::Diagnostics, what, ""}; }

json toJson(const Measurement &measurement) {
  return {{"tuned_us", measurement.tunedUs},
          {"untuned_us", measurement.untunedUs},
          {"spread", measurement.spread},
          {"trees", measurement.trees}};
}

Result<void> readNumber(const json &object, const char *key, double least, double &out) {
  const json &value = object[key];
  const double number = value.is_number() ? value.get<double>() : NAN;
  if (!std::isfinite(number) || number < least)
    return wrong(std::string("measurement: `") + key + "` is not a number " +
                 (least > 0 ? "above 0" : "of at least 0"));
  out = number;
  return {};
}

Result<Measurement> measurementFromJson(const json &object) {
  if (auto checked = tree::checkKeys(object, "measurement", {"tuned_us", "untuned_us", "spread", "trees"});
      !checked)
    return checked.error();
  Measurement measurement;
  constexpr double kAboveZero = 1e-9;
  for (const auto &read : {readNumber(object, "tuned_us", kAboveZero, measurement.tunedUs),
                           readNumber(object, "untuned_us", kAboveZero, measurement.untunedUs),
                           readNumber(object, "spread", 0, measurement.spread)})
    if (!read)
      return read.error();
  const auto trees = tree::readInt(object["trees"], "measurement trees");
  if (!trees)
    return trees.error();
  if (*trees < 1)
    return wrong("measurement: `trees` is " + std::to_string(*trees) + ", less than 1");
  measurement.trees = *trees;
  return measurement;
}

Result<std::vector<Coordinates>> coordinatesFromJson(const json &list) {
  constexpr std::size_t kMost = 64;
  const auto isPlace = [](const json &place) {
    return place.is_array() && place.size() == TreeClass::kDimensions &&
           std::all_of(place.begin(), place.end(), [](const json &number) {
             return number.is_number() && std::isfinite(number.get<double>());
           });
  };
  if (!list.is_array() || list.empty() || list.size() > kMost ||
      !std::all_of(list.begin(), list.end(), isPlace))
    return wrong("`only_for` is no list of 1 to " + std::to_string(kMost) + " places of " +
                 std::to_string(TreeClass::kDimensions) + " numbers");
  return list.get<std::vector<Coordinates>>();
}

Result<void> readKey(const json &object, Entry &entry) {
  const auto signatureText = tree::readString(object["signature"], "signature");
  const auto classText = tree::readString(object["class"], "class");
  if (!signatureText)
    return signatureText.error();
  if (!classText)
    return classText.error();
  const auto signature = VariantSignature::parse(*signatureText);
  if (!signature)
    return wrong("`" + *signatureText + "` is no signature of a variant");
  const auto treeClass = TreeClass::parse(*classText);
  if (!treeClass)
    return wrong("`" + *classText + "` is no class of version c" + std::to_string(TreeClass::kVersion));
  entry.signature = *signature;
  entry.treeClass = *treeClass;
  return {};
}

} // namespace

std::string keyOf(const Entry &entry) { return entry.signature.text() + " " + entry.treeClass.text(); }

double distanceToNearest(const std::vector<Coordinates> &others, const Coordinates &tree) {
  double nearest = std::numeric_limits<double>::infinity();
  for (const Coordinates &other : others) {
    double distance = 0;
    for (std::size_t i = 0; i < other.size(); ++i)
      distance = std::max(distance, std::abs(other[i] - tree[i]));
    nearest = std::min(nearest, distance);
  }
  return nearest;
}

bool Entry::isFresh(DeviceKey::Kind device) const {
  return provenance.kernelHash == kernelHash(device, signature.tensors);
}

bool Entry::isFor(const std::optional<Coordinates> &tree, double slack) const {
  if (keepsDefault || onlyFor.empty())
    return !keepsDefault;
  return tree && distanceToNearest(onlyFor, *tree) <= slack * within;
}

json toJson(const Entry &entry) {
  json object = {{"signature", entry.signature.text()},
                 {"class", entry.treeClass.text()},
                 {"config", config::toJson(entry.config)},
                 {"measurement", toJson(entry.measurement)},
                 {"provenance", toJson(entry.provenance)}};
  if (entry.keepsDefault)
    object["keeps_default"] = true;
  if (!entry.isComplete)
    object["complete"] = false;
  if (!entry.onlyFor.empty())
    object["only_for"] = entry.onlyFor;
  if (!entry.onlyFor.empty() && entry.within != kLikeness)
    object["within"] = entry.within;
  return object;
}

Result<Entry> entryFromJson(const json &object, DeviceKey::Kind device) {
  if (auto checked =
          tree::checkKeys(object, "entry", {"signature", "class", "config", "measurement", "provenance"},
                          {"keeps_default", "complete", "only_for", "within"});
      !checked)
    return checked.error();
  Entry entry;
  if (auto read = readKey(object, entry); !read)
    return read.error();
  auto config = config::configFromJson(object["config"], device);
  if (!config)
    return config.error();
  const auto measurement = measurementFromJson(object["measurement"]);
  if (!measurement)
    return measurement.error();
  auto provenance = provenanceFromJson(object["provenance"]);
  if (!provenance)
    return provenance.error();
  for (const auto &[key, flag] :
       {std::pair("keeps_default", &entry.keepsDefault), std::pair("complete", &entry.isComplete)}) {
    if (!object.contains(key))
      continue;
    if (!object[key].is_boolean())
      return wrong("`" + std::string(key) + "` is neither true nor false");
    *flag = object[key].get<bool>();
  }
  if (object.contains("only_for")) {
    auto places = coordinatesFromJson(object["only_for"]);
    if (!places)
      return places.error();
    if (entry.keepsDefault)
      return wrong("`only_for` does not go with `keeps_default`");
    entry.onlyFor = std::move(*places);
  }
  if (object.contains("within")) {
    const json &within = object["within"];
    entry.within = within.is_number() ? within.get<double>() : NAN;
    if (!(entry.within > 0 && entry.within <= kLikeness))
      return wrong("`within` is not a number above 0 and of at most " + json(kLikeness).dump());
    if (entry.onlyFor.empty())
      return wrong("`within` needs `only_for`");
  }
  entry.config = std::move(*config);
  entry.measurement = *measurement;
  entry.provenance = std::move(*provenance);
  return entry;
}

} // namespace deft::config_cache
