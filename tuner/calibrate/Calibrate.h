#pragma once

#include "runtime/config_cache/PriceFiles.h"
#include "tuner/calibrate/FitPrices.h"
#include "tuner/calibrate/PriceQuality.h"
#include "tuner/session/Tune.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// Prices of a machine that nobody has tuned for: what `deftc tune --calibrate` does.
namespace deft::calibrate {

struct CalibrateInput {
  spec::Variant variant;
  std::vector<exec::ParamValue> params;
  session::Backend backend;
};

struct CalibrateOptions {
  double seconds = 60; ///< at most, the compilation of kernels included
  int threads = 1;     ///< of the host
  int compilers = 0;   ///< as session::TuneOptions has it
  std::uint64_t seed = 1;
  config_cache::Places places; ///< whose prices it begins with, and where it writes
};

/// One plan that was timed.
struct TimedProbe {
  std::string tree;
  config::Config config;
  bool isChoice = false;                    ///< among what is chosen from
  double us = 0, beforeUs = 0, afterUs = 0; ///< measured; by the prices
};

struct Calibration {
  config_cache::DeviceKey device;
  config::PricedDevice from; ///< whose prices it began with
  config::DevicePrices prices;
  PriceFit fit; ///< of the prices by which kernels are compared; those of plans move by the same factors
  std::vector<TimedProbe> probes;
  PriceQuality before, after;
  double seconds = 0;
  std::string path; ///< of the file
  std::vector<std::string> notes;
};

nlohmann::json toJson(const Calibration &calibration);

/// Times some dozen plans of small trees and fits the prices to them, from those that the device has or gets
/// from its nearest; writes them into the user's file of this device. Forks child processes, as
/// session::tune() does.
support::Result<Calibration> calibrate(const CalibrateInput &input, const CalibrateOptions &options,
                                       const session::Listener &listener = {});

} // namespace deft::calibrate
