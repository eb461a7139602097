#pragma once

#include "runtime/exec/cuda/DeviceMark.h"
#include "templates/deft/select_abi.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace deft::exec {

namespace cu = device::cu;

/// The kernel that looks at lists which a caller hands over on the device, and what it noticed.
class ListCheck {
public:
  /// The kernel comes from NVRTC or the cache of kernels.
  static support::Result<ListCheck> create(const std::shared_ptr<device::Device> &device);

  /// What the kernel is compiled of.
  static const char *source();

  /// A list a query, [budget], over a cache of so many slots.
  support::Result<void> launch(const int *lists, int queries, int budget, std::int64_t slots,
                               cu::Stream stream);

  /// An entry that is no slot of the cache. Forgets it.
  std::optional<support::Error> takeFault() const;

private:
  ListCheck(device::Kernel kernel, DeviceMark mark) : kernel_(std::move(kernel)), mark_(std::move(mark)) {}

  device::Kernel kernel_;
  DeviceMark mark_;
  std::int64_t slots_ = 0; ///< of the cache in the last launch
};

} // namespace deft::exec
