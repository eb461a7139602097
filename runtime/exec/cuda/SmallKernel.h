#pragma once

#include "runtime/device/Device.h"

#include <memory>
#include <string>

namespace deft::exec {

/// A kernel of the library's own that no variant is part of, compiled by NVRTC for this device or taken out
/// of the cache of kernels. Uses no shared memory.
support::Result<device::Kernel> loadSmallKernel(const std::shared_ptr<device::Device> &device,
                                                const std::string &entry, const std::string &source,
                                                int threads);

} // namespace deft::exec
