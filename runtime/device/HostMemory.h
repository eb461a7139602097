#pragma once

#include "runtime/device/Device.h"

namespace deft::device {

/// Page-locked host memory. Copies from it run in parallel with the host, and every device can read and write
/// it at the same address.
class HostMemory {
public:
  explicit HostMemory(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~HostMemory();
  HostMemory(HostMemory &&other) noexcept;
  HostMemory &operator=(HostMemory &&) = delete;

  /// Makes room for `bytes`. If it must grow, the contents are lost, and the new memory is zero. Nothing may
  /// be reading it.
  support::Result<void> reserve(std::size_t bytes, const std::string &what);

  template <typename T> T *as() const { return static_cast<T *>(address_); }
  /// The address for kernels of `device`; null if nothing was reserved.
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

/// A mark in a stream, to find out when all earlier work is done. For one thread at a time.
class Mark {
public:
  explicit Mark(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~Mark();
  Mark(Mark &&other) noexcept;
  Mark &operator=(Mark &&) = delete;

  support::Result<void> create();
  /// Puts the mark on the stream, behind all work that is there; it leaves its old place.
  support::Result<void> record(cu::Stream stream, const std::string &after);
  /// Whether all work before it is done; true if it was never recorded.
  bool isReached() const;
  /// Waits until all work before it is done; returns at once if it was never recorded.
  support::Result<void> wait(const std::string &what) const;

private:
  std::shared_ptr<Device> device_;
  cu::Event event_ = nullptr;
  mutable bool isReached_ = true; ///< true once known, so the driver is not asked again
};

} // namespace deft::device
