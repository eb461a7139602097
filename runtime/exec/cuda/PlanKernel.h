#pragma once

#include "runtime/device/Device.h"

#include <memory>

namespace deft::exec {

/// A kernel that changes plans on a device, by NVRTC or out of the cache of kernels. `threads` are a block's.
support::Result<device::Kernel> loadPlanKernel(const std::shared_ptr<device::Device> &device,
                                               const char *entry, const char *source, int threads);

} // namespace deft::exec
