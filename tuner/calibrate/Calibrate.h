#pragma once

#include "runtime/config_cache/PriceFiles.h"
#include "tuner/calibrate/FitPrices.h"
#include "tuner/calibrate/PriceQuality.h"
#include "tuner/session/Tune.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// Prices of a machine without tuned entries: implements `deftc tune --calibrate`.
namespace deft::calibrate {

struct CalibrateInput {
  spec::Variant variant;
  std::vector<exec::ParamValue> params;
  session::Backend backend;
};

struct CalibrateOptions {
  double seconds = 60; ///< at most, including the compilation of kernels
  int threads = 1;     ///< of the host
  int compilers = 0;   ///< as in session::TuneOptions
  std::uint64_t seed = 1;
  config_cache::Places places; ///< for the initial prices, and for the result
};

/// A plan that was timed.
struct TimedProbe {
  std::string tree;
  config::Config config;
  bool isChoice = false;                    ///< whether an untuned choice may be this config
  double us = 0, beforeUs = 0, afterUs = 0; ///< measured; by the prices before and after
};

struct Calibration {
  config_cache::DeviceKey device;
  config::PricedDevice from; ///< the device of the initial prices
  config::DevicePrices prices;
  PriceFit fit; ///< of the prices that compare kernels; those of plans change by the same factors
  std::vector<TimedProbe> probes;
  PriceQuality before, after;
  double seconds = 0;
  std::string path; ///< of the file
  std::vector<std::string> notes;
};

nlohmann::json toJson(const Calibration &calibration);

/// Times several dozen plans of small trees and fits the prices to them, starting from the device's prices or
/// those of its nearest neighbour. Writes them into the user's file for this device. Forks child processes,
/// like session::tune().
support::Result<Calibration> calibrate(const CalibrateInput &input, const CalibrateOptions &options,
                                       const session::Listener &listener = {});

} // namespace deft::calibrate
