#pragma once

#include "compiler/config/Config.h"
#include "compiler/config/CostCoefficients.h"
#include "compiler/support/Result.h"

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <string_view>

namespace deft::config {

/// A device as far as prices go: by these, one without prices of its own gets those of the nearest.
struct PricedDevice {
  DeviceKind kind = DeviceKind::Gpu;
  std::string arch; ///< "sm_90", "x86-64-v4"
  int units = 1;    ///< GPU: multiprocessors; CPU: threads that run
  std::string name; ///< the model; empty: none in particular

  bool operator==(const PricedDevice &) const = default;
};

/// The GPU that is meant where none in particular is: its prices are fitted to most measurements.
inline PricedDevice someGpu() { return {DeviceKind::Gpu, "sm_90", 132, "NVIDIA H200"}; }

/// The prices of one device, as its file has them: those that ship in tuner/prices, and what `deftc tune
/// --calibrate` writes.
struct DevicePrices {
  PricedDevice device;
  CostCoefficients plans; ///< by which the planner compares two ways to cut a tree
  /// To compare several kernels, each with its plan by the above, and to report the time of a plan. One set
  /// does not do both well: plans cut by these prices leave blocks idle.
  CostCoefficients kernels;
  std::string note; ///< where they come from

  bool operator==(const DevicePrices &) const = default;
};

nlohmann::json toJson(const DevicePrices &prices);
/// A file's text. Without `kernels`, these are as `plans`. An unknown key or a price that checkCost refuses
/// is an error, as is a file of another format or version.
support::Result<DevicePrices> pricesFromText(std::string_view text);

/// Those that ship, in the order of their files' names. They are in the program, so that no file has to be
/// beside it.
std::span<const DevicePrices> shippedPrices();

/// Of the known ones, at least one of them of the device's kind, those of the device; else of its
/// architecture, else of any, those of the most similar number of units, of equals someGpu(), then the first.
/// Of a processor with another number of threads, rates of the whole machine are in proportion to threads, as
/// far as memory serves more of these.
const DevicePrices &nearestPrices(const PricedDevice &device,
                                  std::span<const DevicePrices> known = shippedPrices());
DevicePrices pricesFor(const PricedDevice &device, std::span<const DevicePrices> known = shippedPrices());
/// Those of a host of no particular model with so many threads.
CostCoefficients processorPrices(int threads);

} // namespace deft::config
