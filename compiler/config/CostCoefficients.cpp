#include "compiler/config/CostCoefficients.h"

#include "compiler/config/PriceNames.h"
#include "compiler/support/NearestName.h"
#include "compiler/support/Numbers.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace deft::config {
namespace {

using nlohmann::json;
using support::Error;
using support::ErrorCode;

/// What a price may be. Far beyond what machines have, in both directions, and near enough that no sum over
/// the items of a plan leaves the numbers: by a price of infinity no plan is the cheapest.
struct Range {
  double least, most;
};
constexpr Range kRate{1e-3, 1e9};    ///< GB/s, GFLOP/s: divides
constexpr Range kTime{0, 1e6};       ///< microseconds
constexpr Range kDivisor{1e-6, 1e6}; ///< microseconds that divide
constexpr Range kSize{0, 1e9};       ///< MB
constexpr Range kFactor{0, 1e3};

struct Price {
  const char *key;
  double CostCoefficients::*member;
  Range range;
  bool isNew = false;   ///< there are files without it, which were written when it was nothing
  bool isOften = false; ///< it is what it is by default nearly always, and left out then
};
constexpr std::array<Price, 26> kPrices{{
    {"cache_gb_s", &CostCoefficients::cacheGBs, kRate},
    {"again_gb_s", &CostCoefficients::againGBs, kRate},
    {"partial_gb_s", &CostCoefficients::partialGBs, kRate},
    {"block_gflops", &CostCoefficients::blockGflops, kRate},
    {"wgmma_block_gflops", &CostCoefficients::wgmmaBlockGflops, kRate},
    {"step_us", &CostCoefficients::stepUs, kTime},
    {"item_us", &CostCoefficients::itemUs, kTime},
    {"run_us", &CostCoefficients::runUs, kTime, true},
    {"mask_us", &CostCoefficients::maskUs, kTime, true},
    {"launch_us", &CostCoefficients::launchUs, kTime},
    {"merge_us", &CostCoefficients::mergeUs, kTime},
    {"slot_us", &CostCoefficients::slotUs, kTime, true},
    {"light_step", &CostCoefficients::lightStep, kFactor, false, true},
    {"light_item", &CostCoefficients::lightItem, kFactor, false, true},
    {"key_us", &CostCoefficients::keyUs, kTime, false, true},
    {"dealt_keys", &CostCoefficients::dealtKeys, kFactor, false, true},
    {"turn_step", &CostCoefficients::turnStep, kFactor, false, true},
    {"merged_share", &CostCoefficients::mergedShare, kFactor, true},
    {"chunk_token_us", &CostCoefficients::chunkTokenUs, kDivisor, false, true},
    {"chunk_item_us", &CostCoefficients::chunkItemUs, kTime, false, true},
    {"chunk_merge_us", &CostCoefficients::chunkMergeUs, kTime, false, true},
    {"chunk_partial_gb_s", &CostCoefficients::chunkPartialGBs, kRate, false, true},
    {"latent_token_us", &CostCoefficients::latentTokenUs, kDivisor, false, true},
    {"latent_item_us", &CostCoefficients::latentItemUs, kTime, false, true},
    {"union_us", &CostCoefficients::unionUs, kTime, false, true},
    {"last_level_mb", &CostCoefficients::lastLevelMB, kSize, false, true},
}};
constexpr int kMostStep = 4096;

struct Step {
  const char *key;
  int CostCoefficients::*member;
};
constexpr std::array<Step, 2> kSteps{{
    {"row_step", &CostCoefficients::rowStep},
    {"token_step", &CostCoefficients::tokenStep},
}};

Error wrong(const std::string &key, const std::string &what) {
  return {ErrorCode::Diagnostics, "cost: `" + key + "` " + what, ""};
}

std::string number(double value) { return support::significant(value, 6); }

std::string hintFor(const std::string &key) {
  std::vector<std::string> names;
  for (const Price &price : kPrices)
    names.emplace_back(price.key);
  for (const Step &step : kSteps)
    names.emplace_back(step.key);
  return support::didYouMean(key, names);
}

} // namespace

std::span<const PriceName> priceNames() {
  static const auto names = [] {
    std::array<PriceName, kPrices.size()> all{};
    for (std::size_t i = 0; i < kPrices.size(); ++i)
      all[i] = {kPrices[i].key, kPrices[i].member};
    return all;
  }();
  return names;
}

json toJson(const CostCoefficients &coefficients) {
  json object = json::object();
  for (const Price &price : kPrices)
    if ((!price.isNew || coefficients.*price.member != 0) &&
        (!price.isOften || coefficients.*price.member != CostCoefficients().*price.member))
      object[price.key] = coefficients.*price.member;
  for (const Step &step : kSteps)
    object[step.key] = coefficients.*step.member;
  return object;
}

support::Result<CostCoefficients> costFromJson(const json &object) {
  if (!object.is_object())
    return Error{ErrorCode::Diagnostics, "cost: is not an object", ""};
  CostCoefficients cost;
  for (const Price &price : kPrices)
    if (price.isNew)
      cost.*price.member = 0;
  for (const auto &[key, value] : object.items()) {
    const auto hasKey = [&key = key](const auto &entry) { return key == entry.key; };
    if (const auto price = std::find_if(kPrices.begin(), kPrices.end(), hasKey); price != kPrices.end()) {
      if (!value.is_number())
        return wrong(key, "is not a number");
      cost.*price->member = value.get<double>();
    } else if (const auto step = std::find_if(kSteps.begin(), kSteps.end(), hasKey); step != kSteps.end()) {
      if (!value.is_number_integer() || value < 0 || value > kMostStep)
        return wrong(key, "is not an integer from 0 to " + std::to_string(kMostStep));
      cost.*step->member = value.get<int>();
    } else {
      return Error{ErrorCode::Diagnostics, "cost: unknown key `" + key + "`", hintFor(key)};
    }
  }
  if (auto checked = checkCost(cost); !checked)
    return checked.error();
  return cost;
}

support::Result<void> checkCost(const CostCoefficients &cost) {
  for (const Price &price : kPrices) {
    const double value = cost.*price.member;
    if (!(value >= price.range.least && value <= price.range.most)) // a NaN is in no range
      return wrong(price.key, "is " + number(value) + ", a price is from " + number(price.range.least) +
                                  " to " + number(price.range.most));
  }
  for (const Step &step : kSteps)
    if (const int value = cost.*step.member; value < 0 || value > kMostStep)
      return wrong(step.key,
                   "is " + std::to_string(value) + ", a step is from 0 to " + std::to_string(kMostStep));
  return {};
}

} // namespace deft::config
