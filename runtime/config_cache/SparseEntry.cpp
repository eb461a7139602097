#include "runtime/config_cache/SparseEntry.h"

#include "compiler/spec/Names.h"
#include "runtime/tree/StrictJson.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace deft::config_cache {

using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

constexpr int kMost = 1 << 24; ///< of any number: what a plan counts stays far below
constexpr std::size_t kMostCuts = 1024;

Error wrongSparse(const std::string &what) { return {ErrorCode::Diagnostics, what, ""}; }

Result<int> readCount(const json &object, const char *key, int least) {
  auto value = tree::readInt(object[key], key);
  if (value && (*value < least || *value > kMost))
    return wrongSparse(std::string("`") + key + "` is " + std::to_string(*value) + ", not between " +
                       std::to_string(least) + " and " + std::to_string(kMost));
  return value;
}

Result<double> readTime(const json &object, const char *key, bool mayBeZero) {
  const json &value = object[key];
  const double number = value.is_number() ? value.get<double>() : NAN;
  if (!std::isfinite(number) || number < 0 || (number == 0 && !mayBeZero))
    return wrongSparse(std::string("`") + key + "` is not a number " +
                       (mayBeZero ? "of at least 0" : "above 0"));
  return number;
}

Result<TimedCut> cutFromJson(const json &object, int tileKv) {
  if (auto checked =
          tree::checkKeys(object, "a cut", {"queries", "item_tokens", "tuned_us", "untuned_us", "spread"});
      !checked)
    return checked.error();
  const auto queries = readCount(object, "queries", 1), itemTokens = readCount(object, "item_tokens", 0);
  const auto tuned = readTime(object, "tuned_us", false), untuned = readTime(object, "untuned_us", false),
             spread = readTime(object, "spread", true);
  for (const auto *count : {&queries, &itemTokens})
    if (!*count)
      return count->error();
  for (const auto *time : {&tuned, &untuned, &spread})
    if (!*time)
      return time->error();
  if (*itemTokens % tileKv != 0)
    return wrongSparse("`item_tokens` is " + std::to_string(*itemTokens) +
                       ", no multiple of `tile_kv`, which is " + std::to_string(tileKv));
  return TimedCut{*queries, *itemTokens, *tuned, *untuned, *spread};
}

Result<std::vector<TimedCut>> cutsFromJson(const json &list, int tileKv) {
  if (!list.is_array() || list.size() > kMostCuts)
    return wrongSparse("`cuts` is no list of at most " + std::to_string(kMostCuts));
  std::vector<TimedCut> cuts;
  for (const json &object : list) {
    const auto cut = cutFromJson(object, tileKv);
    if (!cut)
      return cut.error();
    if (!cuts.empty() && cut->queries <= cuts.back().queries)
      return wrongSparse("`cuts` are not in order of rising `queries`");
    cuts.push_back(*cut);
  }
  return cuts;
}

} // namespace

bool SparseEntry::isOf(const spec::Variant &variant) const {
  return variant.select && variant.select->by == by && VariantSignature::of(variant) == signature;
}

bool SparseEntry::isOf(const config::PhaseConfig &tile) const {
  return tile.tileKv == tileKv && tile.stages == stages && tile.warps == warps;
}

bool SparseEntry::isFresh() const { return provenance.kernelHash == sparseKernelHash(); }

double SparseEntry::gain() const {
  double sum = 0;
  for (const TimedCut &cut : cuts)
    sum += std::log(cut.untunedUs / cut.tunedUs);
  return cuts.empty() ? 1 : std::exp(sum / static_cast<double>(cuts.size()));
}

bool areOfSameLists(const SparseEntry &a, const SparseEntry &b) {
  return a.signature == b.signature && a.by == b.by && a.budget == b.budget;
}

std::string keyOf(const SparseEntry &entry) {
  return entry.signature.text() + " " + spec::toString(entry.by) + " " + std::to_string(entry.budget) + " " +
         std::to_string(entry.tileKv) + "x" + std::to_string(entry.stages) + "x" +
         std::to_string(entry.warps);
}

json toJson(const SparseEntry &entry) {
  json cuts = json::array();
  for (const TimedCut &cut : entry.cuts)
    cuts.push_back({{"queries", cut.queries},
                    {"item_tokens", cut.itemTokens},
                    {"tuned_us", cut.tunedUs},
                    {"untuned_us", cut.untunedUs},
                    {"spread", cut.spread}});
  return {{"signature", entry.signature.text()},
          {"by", spec::toString(entry.by)},
          {"budget", entry.budget},
          {"tile_kv", entry.tileKv},
          {"stages", entry.stages},
          {"warps", entry.warps},
          {"chosen", entry.isChosen},
          {"cuts", std::move(cuts)},
          {"provenance", toJson(entry.provenance)}};
}

Result<SparseEntry> sparseEntryFromJson(const json &object) {
  if (auto checked = tree::checkKeys(
          object, "entry",
          {"signature", "by", "budget", "tile_kv", "stages", "warps", "chosen", "cuts", "provenance"});
      !checked)
    return checked.error();
  SparseEntry entry;
  const auto signatureText = tree::readString(object["signature"], "signature"),
             byText = tree::readString(object["by"], "by");
  for (const auto *text : {&signatureText, &byText})
    if (!*text)
      return text->error();
  const auto signature = VariantSignature::parse(*signatureText);
  if (!signature)
    return wrongSparse("`" + *signatureText + "` is no signature of a variant");
  const auto by = spec::parseSelectBy(*byText);
  if (!by)
    return wrongSparse("`" + *byText + "` is no value of `by`");
  entry.signature = *signature;
  entry.by = *by;
  for (const auto &[key, number] : {std::pair("budget", &entry.budget), std::pair("tile_kv", &entry.tileKv),
                                    std::pair("stages", &entry.stages), std::pair("warps", &entry.warps)}) {
    const auto value = readCount(object, key, 1);
    if (!value)
      return value.error();
    *number = *value;
  }
  if (!object["chosen"].is_boolean())
    return wrongSparse("`chosen` is neither true nor false");
  entry.isChosen = object["chosen"].get<bool>();
  auto cuts = cutsFromJson(object["cuts"], entry.tileKv);
  if (!cuts)
    return cuts.error();
  entry.cuts = std::move(*cuts);
  auto provenance = provenanceFromJson(object["provenance"]);
  if (!provenance)
    return provenance.error();
  entry.provenance = std::move(*provenance);
  return entry;
}

SparseEntry withOlderCuts(SparseEntry newer, const SparseEntry &older) {
  if (older.provenance.kernelHash != newer.provenance.kernelHash)
    return newer;
  const auto byQueries = [](const TimedCut &a, const TimedCut &b) { return a.queries < b.queries; };
  std::vector<TimedCut> all; // of equal ones the first range's
  std::set_union(newer.cuts.begin(), newer.cuts.end(), older.cuts.begin(), older.cuts.end(),
                 std::back_inserter(all), byQueries);
  newer.cuts = std::move(all);
  return newer;
}

} // namespace deft::config_cache
