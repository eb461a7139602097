#include "compiler/config/ConfigJson.h"
#include "tuner/calibrate/Calibrate.h"

#include <nlohmann/json.hpp>

namespace deft::calibrate {

using nlohmann::json;

namespace {

json toJson(const PriceQuality &quality) {
  return {{"median_error", quality.medianError},
          {"worst_error", quality.worstError},
          {"mean_regret", quality.meanRegret},
          {"worst_regret", quality.worstRegret}};
}

} // namespace

json toJson(const Calibration &calibration) {
  json probes = json::array(), decided = json::array(), kept = json::array();
  for (const TimedProbe &probe : calibration.probes)
    probes.push_back({{"tree", probe.tree},
                      {"partition", config::partitionName(probe.config.partition)},
                      {"chunk_tokens", probe.config.chunkTokens},
                      {"tile_q", probe.config.phases.front().tileQ},
                      {"order", static_cast<int>(probe.config.order)},
                      {"is_choice", probe.isChoice},
                      {"us", probe.us},
                      {"before_us", probe.beforeUs},
                      {"after_us", probe.afterUs}});
  for (const FittedPrice &price : calibration.fit.prices)
    (price.isDecided ? decided : kept).push_back(price.name.key);
  return {{"from", calibration.from.name},        {"told", std::move(decided)},
          {"not_told", std::move(kept)},          {"trees", calibration.after.trees},
          {"before", toJson(calibration.before)}, {"after", toJson(calibration.after)},
          {"seconds", calibration.seconds},       {"probes", std::move(probes)}};
}

} // namespace deft::calibrate
