#pragma once

#include "runtime/exec/cuda/DeviceMark.h"
#include "templates/deft/abi.h"

#include <memory>
#include <optional>

namespace deft::exec {

namespace cu = device::cu;

/// The kernel that checks the pages which a plan names, in a page table that only the device has, and the
/// fault that it found.
class PageCheck {
public:
  /// NVRTC compiles the kernel, or it comes from the cache of kernels.
  static support::Result<PageCheck> create(const std::shared_ptr<device::Device> &device);

  /// The source text of the kernel.
  static const char *source();

  /// Checks the items and their runs on the device, including unused room, for a cache of `pages` pages.
  support::Result<void> launch(const abi::Item *items, int itemCount, const abi::Run *runs,
                               const int *pageTable, int pageSize, int pages, cu::Stream stream);

  /// Returns an entry that is not a page of the cache, if one was found, and clears it.
  std::optional<support::Error> takeFault() const;

private:
  PageCheck(device::Kernel kernel, DeviceMark mark) : kernel_(std::move(kernel)), mark_(std::move(mark)) {}

  device::Kernel kernel_;
  DeviceMark mark_;
  int pages_ = 0; ///< of the cache, in the last launch
};

} // namespace deft::exec
