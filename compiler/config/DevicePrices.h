#pragma once

#include "compiler/config/Config.h"
#include "compiler/config/CostCoefficients.h"
#include "compiler/support/Result.h"

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <string_view>

namespace deft::config {

/// The properties of a device that prices depend on. A device without prices gets those of the nearest one.
struct PricedDevice {
  DeviceKind kind = DeviceKind::Gpu;
  std::string arch; ///< "sm_90", "x86-64-v4"
  int units = 1;    ///< GPU: multiprocessors; CPU: threads in use
  std::string name; ///< the model; empty: no particular one

  bool operator==(const PricedDevice &) const = default;
};

/// The GPU to assume if none is given: its prices are fitted to the most measurements.
inline PricedDevice someGpu() { return {DeviceKind::Gpu, "sm_90", 132, "NVIDIA H200"}; }

/// The prices of one device, as in a file: those in tuner/prices, which ship, and those that `deftc tune
/// --calibrate` writes.
struct DevicePrices {
  PricedDevice device;
  CostCoefficients plans; ///< for the planner, to compare ways to cut a tree
  /// To compare kernels, each with its best plan by the prices above, and to report the time of a plan. One
  /// set cannot do both well: plans cut by these prices leave blocks idle.
  CostCoefficients kernels;
  std::string note; ///< their origin

  bool operator==(const DevicePrices &) const = default;
};

nlohmann::json toJson(const DevicePrices &prices);
/// Reads the text of a file. Without `kernels`, these equal `plans`. An unknown key, a price that checkCost
/// refuses, or a file of another format or version is an error.
support::Result<DevicePrices> pricesFromText(std::string_view text);

/// The shipped prices, in the order of their file names. The program contains them, so it needs no
/// file.
std::span<const DevicePrices> shippedPrices();

/// The best match among the known prices; at least one must be for the device's kind. First comes the same
/// model, then the same architecture, then any device of the kind; among these the most similar number of
/// units, then someGpu(), then the first. pricesFor() also scales a processor's whole-machine rates to the
/// number of threads, as far as memory serves more of them.
const DevicePrices &nearestPrices(const PricedDevice &device,
                                  std::span<const DevicePrices> known = shippedPrices());
DevicePrices pricesFor(const PricedDevice &device, std::span<const DevicePrices> known = shippedPrices());
/// The prices of a processor of no particular model with so many threads.
CostCoefficients processorPrices(int threads);

} // namespace deft::config
