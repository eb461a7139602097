#pragma once

#include "runtime/exec/cuda/DeviceMark.h"
#include "templates/deft/abi.h"

#include <memory>
#include <optional>

namespace deft::exec {

namespace cu = device::cu;

/// The kernel that looks at the pages which a plan names, in a table that only the device has, and what it
/// noticed.
class PageCheck {
public:
  /// The kernel comes from NVRTC or the cache of kernels.
  static support::Result<PageCheck> create(const std::shared_ptr<device::Device> &device);

  /// What the kernel is compiled of.
  static const char *source();

  /// Items and their runs as on the device, those behind the end of lists included; a cache of so many pages.
  support::Result<void> launch(const abi::Item *items, int itemCount, const abi::Run *runs,
                               const int *pageTable, int pageSize, int pages, cu::Stream stream);

  /// An entry that is no page of the cache. Forgets it.
  std::optional<support::Error> takeFault() const;

private:
  PageCheck(device::Kernel kernel, DeviceMark mark) : kernel_(std::move(kernel)), mark_(std::move(mark)) {}

  device::Kernel kernel_;
  DeviceMark mark_;
  int pages_ = 0; ///< of the cache in the last launch
};

} // namespace deft::exec
