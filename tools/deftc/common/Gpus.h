#pragma once

#include "compiler/target/Target.h"
#include "runtime/device/Device.h"

#include <vector>

namespace deft::cli {

/// A GPU of this machine.
struct FoundGpu {
  device::DeviceFacts facts;
  const target::Target *target = nullptr; ///< the target of its kernels; null: it can run none
};

/// All GPUs of the driver, in its order; an error if one of them does not respond.
support::Result<std::vector<FoundGpu>> findGpus(const device::Driver &driver);

} // namespace deft::cli
