#pragma once

#include "runtime/device/Device.h"

namespace deft::device {

/// Page-locked memory of the host, from which copies run beside the host's own work, and which every device
/// can read and write at the same address.
class HostMemory {
public:
  explicit HostMemory(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~HostMemory();
  HostMemory(HostMemory &&other) noexcept;
  HostMemory &operator=(HostMemory &&) = delete;

  /// Makes room for `bytes`; what was in it is lost when it must grow, and it is zero then. Nothing may be
  /// reading it.
  support::Result<void> reserve(std::size_t bytes, const std::string &what);

  template <typename T> T *as() const { return static_cast<T *>(address_); }
  /// As kernels of `device` see it; null when nothing was asked for.
  template <typename T> T *onDevice() const {
    return reinterpret_cast<T *>(static_cast<std::uintptr_t>(deviceAddress_));
  }
  std::size_t bytes() const { return bytes_; }

private:
  void free();

  std::shared_ptr<Device> device_;
  void *address_ = nullptr;
  cu::DevicePtr deviceAddress_ = 0;
  std::size_t bytes_ = 0;
};

/// A mark in a stream: says when everything before it is done. For one thread at a time.
class Mark {
public:
  explicit Mark(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~Mark();
  Mark(Mark &&other) noexcept;
  Mark &operator=(Mark &&) = delete;

  support::Result<void> create();
  /// Puts it on the stream, behind all that is there; it leaves the place where it was.
  support::Result<void> record(cu::Stream stream, const std::string &after);
  /// Whether what stood before it is done; also where it was never recorded.
  bool isReached() const;
  /// Waits until what stood before it is done; at once where it was never recorded.
  support::Result<void> wait(const std::string &what) const;

private:
  std::shared_ptr<Device> device_;
  cu::Event event_ = nullptr;
  mutable bool isReached_ = true; ///< known to be: the driver need not be asked again
};

} // namespace deft::device
