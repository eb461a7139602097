#pragma once

#include "compiler/config/DevicePrices.h"
#include "runtime/config_cache/ConfigCache.h"

#include <string>
#include <vector>

/// Where a device's prices come from.
namespace deft::config_cache {

config::PricedDevice pricedDevice(const DeviceKey &key);

struct FoundPrices {
  config::DevicePrices prices;    ///< for this device
  config::PricedDevice of;        ///< whose they are; another's where nobody has calibrated this one
  std::string path;               ///< of the user's file; empty: they ship
  std::vector<std::string> notes; ///< what was wrong with files, which are passed over
};

/// Those of the device itself, the user's before what ships; else the nearest of all there are
/// (config::nearestPrices).
FoundPrices findPrices(const Places &places, const DeviceKey &device);

/// Writes the file of `prices.device` into the user's folder and says its path. `calibration` says how they
/// were found, for people.
support::Result<std::string> savePrices(const Places &places, const DeviceKey &device,
                                        const config::DevicePrices &prices,
                                        const nlohmann::json &calibration);

} // namespace deft::config_cache
