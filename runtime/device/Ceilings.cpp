#include "runtime/device/Ceilings.h"

#include <algorithm>

namespace deft::device {

namespace {

constexpr Ceilings kMeasured[] = {
    {"NVIDIA H200", 4704, 744, 794, 2.8, 3.6},
};

} // namespace

const Ceilings *ceilingsOf(std::string_view deviceName) {
  for (const Ceilings &ceilings : kMeasured)
    if (deviceName.find(ceilings.model) != std::string_view::npos)
      return &ceilings;
  return nullptr;
}

double floorUs(const Ceilings &ceilings, spec::DType dtype, double cacheBytes, double flops) {
  const double tflops = dtype == spec::DType::BF16 ? ceilings.bf16TFlops : ceilings.f16TFlops;
  return std::max(ceilings.readStartUs + cacheBytes / (ceilings.readGBs * 1e3),
                  ceilings.launchUs + flops / (tflops * 1e6));
}

} // namespace deft::device
