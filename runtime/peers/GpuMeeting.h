#pragma once

#include "runtime/device/Device.h"
#include "runtime/peers/GpuExchange.h"

#include <memory>

namespace deft::peers {

/// The ranks of a host find their group by its name, as processes of one user or as threads. All of them use
/// the same transport. Returns when all have arrived, or with an error about a rank that is late, differs, or
/// cannot use the transport. `library` is the file of NCCL's library.
support::Result<std::unique_ptr<GpuExchange>> meet(const std::shared_ptr<device::Device> &device,
                                                   const GpuGroup &group, const std::string &name,
                                                   Transport wanted,
                                                   const std::string &library = "libnccl.so.2");

} // namespace deft::peers
