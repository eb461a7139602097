#pragma once

#include "runtime/device/Device.h"

#include <memory>
#include <string>

namespace deft::exec {

/// Loads a kernel of the library itself, independent of variants: NVRTC compiles it for this device, or it
/// comes from the cache of kernels. It uses no shared memory.
support::Result<device::Kernel> loadSmallKernel(const std::shared_ptr<device::Device> &device,
                                                const std::string &entry, const std::string &source,
                                                int threads);

} // namespace deft::exec
