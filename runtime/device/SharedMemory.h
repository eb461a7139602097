#pragma once

#include "runtime/device/Device.h"

namespace deft::device {

/// Memory of a GPU that other GPUs of the host map, in this or another process: its handle is a file
/// descriptor, which processes can pass on. The memory lives as long as any process maps it.
class SharedMemory {
public:
  /// Memory of the device, filled with zeros. `what` names it in errors.
  static support::Result<SharedMemory> make(const std::shared_ptr<Device> &device, std::size_t bytes,
                                            const std::string &what);
  /// Memory of another GPU, for reading and writing by this device. `handle` stays the caller's; `bytes` must
  /// be the size with which it was made.
  static support::Result<SharedMemory> open(const std::shared_ptr<Device> &device, int handle,
                                            std::size_t bytes, const std::string &what);
  ~SharedMemory();
  SharedMemory(SharedMemory &&other) noexcept;
  SharedMemory &operator=(SharedMemory &&) = delete;

  /// A new file descriptor of it, which the caller must close.
  support::Result<int> handle() const;
  void *address() const { return reinterpret_cast<void *>(static_cast<std::uintptr_t>(address_)); }

private:
  SharedMemory(std::shared_ptr<Device> device, std::string what)
      : device_(std::move(device)), what_(std::move(what)) {}

  support::Result<void> roundUp(std::size_t bytes);
  support::Result<void> map();
  support::Result<void> clear() const;
  support::Result<void> check(const std::string &whatFailed, cu::Result result) const;

  std::shared_ptr<Device> device_;
  std::string what_;
  cu::Allocation allocation_ = 0; ///< 0: no allocation
  cu::DevicePtr address_ = 0;     ///< 0: no reserved addresses
  std::size_t bytes_ = 0;
  bool isMapped_ = false;
};

} // namespace deft::device
