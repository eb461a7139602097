#pragma once

#include "compiler/config/DevicePrices.h"
#include "runtime/config_cache/ConfigCache.h"

#include <string>
#include <vector>

/// Finds the prices of a device.
namespace deft::config_cache {

config::PricedDevice pricedDevice(const DeviceKey &key);

struct FoundPrices {
  config::DevicePrices prices;    ///< for this device
  config::PricedDevice of;        ///< the measured device; another one if this is not calibrated
  std::string path;               ///< of the user's file; empty: shipped prices
  std::vector<std::string> notes; ///< faults of files, which are skipped
};

/// The prices of the device itself, the user's before the shipped ones; else those of the nearest known
/// device (config::nearestPrices).
FoundPrices findPrices(const Places &places, const DeviceKey &device);

/// Writes the file of `prices.device` into the user's folder and returns its path. `calibration` describes
/// the measurement, for people.
support::Result<std::string> savePrices(const Places &places, const DeviceKey &device,
                                        const config::DevicePrices &prices,
                                        const nlohmann::json &calibration);

} // namespace deft::config_cache
