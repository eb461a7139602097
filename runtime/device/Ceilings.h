#pragma once

#include "compiler/spec/Variant.h"

#include <string_view>

namespace deft::device {

/// The best rates measured on a GPU model.
struct Ceilings {
  std::string_view model;
  double readGBs = 0;   ///< cold read of a large buffer
  double f16TFlops = 0; ///< matrix product of 8192^3
  double bf16TFlops = 0;
  double launchUs = 0;    ///< an empty kernel in a graph
  double readStartUs = 0; ///< a cold read of almost nothing, including the launch
};

/// The ceilings of the model in a device's name; null if that was never measured.
const Ceilings *ceilingsOf(std::string_view deviceName);

/// The least time for reading `cacheBytes` once and computing `flops`: the larger of a cold read and of the
/// flops at the matrix rate, each including one launch.
double floorUs(const Ceilings &ceilings, spec::DType dtype, double cacheBytes, double flops);

} // namespace deft::device
