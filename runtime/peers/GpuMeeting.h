#pragma once

#include "runtime/device/Device.h"
#include "runtime/peers/GpuExchange.h"

#include <memory>

namespace deft::peers {

/// The ranks of a host that know their group by its name, as processes of one user or as threads. All of them
/// take the same transport. Returns when all have come, or with an error that says which rank is late,
/// differs, or cannot use the transport. `library` is NCCL's.
support::Result<std::unique_ptr<GpuExchange>> meet(const std::shared_ptr<device::Device> &device,
                                                   const GpuGroup &group, const std::string &name,
                                                   Transport wanted,
                                                   const std::string &library = "libnccl.so.2");

} // namespace deft::peers
