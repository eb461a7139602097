#pragma once

#include "runtime/exec/cuda/DeviceMark.h"
#include "templates/deft/select_abi.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace deft::exec {

namespace cu = device::cu;

/// The kernel that checks lists which a caller gives in device memory, and the fault that it found.
class ListCheck {
public:
  /// NVRTC compiles the kernel, or it comes from the cache of kernels.
  static support::Result<ListCheck> create(const std::shared_ptr<device::Device> &device);

  /// The source text of the kernel.
  static const char *source();

  /// Checks one list of `budget` entries for each query, for a cache of `slots` slots.
  support::Result<void> launch(const int *lists, int queries, int budget, std::int64_t slots,
                               cu::Stream stream);

  /// Returns an entry that is not a slot of the cache, if one was found, and clears it.
  std::optional<support::Error> takeFault() const;

private:
  ListCheck(device::Kernel kernel, DeviceMark mark) : kernel_(std::move(kernel)), mark_(std::move(mark)) {}

  device::Kernel kernel_;
  DeviceMark mark_;
  std::int64_t slots_ = 0; ///< of the cache, in the last launch
};

} // namespace deft::exec
