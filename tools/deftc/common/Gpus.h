#pragma once

#include "compiler/target/Target.h"
#include "runtime/device/Device.h"

#include <vector>

namespace deft::cli {

/// A GPU of this machine.
struct FoundGpu {
  device::DeviceFacts facts;
  const target::Target *target = nullptr; ///< whose kernels it gets; null: none run on it
};

/// All that the driver has, in its order; an error where one of them does not answer.
support::Result<std::vector<FoundGpu>> findGpus(const device::Driver &driver);

} // namespace deft::cli
