#include "runtime/device/HostMemory.h"

#include <cstring>
#include <utility>

namespace deft::device {

using support::Result;

HostMemory::~HostMemory() { free(); }

HostMemory::HostMemory(HostMemory &&other) noexcept
    : device_(std::move(other.device_)), address_(std::exchange(other.address_, nullptr)),
      deviceAddress_(std::exchange(other.deviceAddress_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}

void HostMemory::free() {
  if (!address_)
    return;
  const Device::Current current(*device_);
  (void)device_->api().memFreeHost(std::exchange(address_, nullptr));
  deviceAddress_ = 0;
  bytes_ = 0;
}

Result<void> HostMemory::reserve(std::size_t bytes, const std::string &what) {
  if (bytes <= bytes_)
    return {};
  free();
  const cu::Api &api = device_->api();
  const Device::Current current(*device_);
  const cu::Result allocated =
      api.memHostAlloc(&address_, bytes, cu::kHostAllocPortable | cu::kHostAllocDeviceMap);
  if (allocated != cu::kSuccess) {
    address_ = nullptr;
    return device_->driver().error(
        "cannot lock " + std::to_string(bytes) + " bytes of the host's memory for " + what, allocated);
  }
  std::memset(address_, 0, bytes);
  auto mapped = device_->driver().check("cannot map the host's memory for " + what,
                                        api.memHostGetDevicePointer(&deviceAddress_, address_, 0));
  if (mapped)
    bytes_ = bytes;
  else
    free(); // what a device cannot see is no room for less either
  return mapped;
}

Mark::~Mark() {
  if (!event_)
    return;
  const Device::Current current(*device_);
  (void)device_->api().eventDestroy(event_);
}

Mark::Mark(Mark &&other) noexcept
    : device_(std::move(other.device_)), event_(std::exchange(other.event_, nullptr)),
      isReached_(other.isReached_) {}

Result<void> Mark::create() {
  const Device::Current current(*device_);
  return device_->driver().check("cannot make an event",
                                 device_->api().eventCreate(&event_, cu::kEventDisableTiming));
}

Result<void> Mark::record(cu::Stream stream, const std::string &after) {
  const Device::Current current(*device_);
  isReached_ = false;
  const cu::Result result = device_->api().eventRecord(event_, stream);
  return result == cu::kSuccess ? Result<void>()
                                : device_->driver().error("cannot mark the stream after " + after, result);
}

bool Mark::isReached() const {
  if (isReached_)
    return true;
  const Device::Current current(*device_);
  isReached_ = device_->api().eventQuery(event_) == cu::kSuccess;
  return isReached_;
}

Result<void> Mark::wait(const std::string &what) const {
  if (isReached_)
    return {};
  const cu::Api &api = device_->api();
  const Device::Current current(*device_);
  cu::Result result = api.eventQuery(event_);
  if (result == cu::kNotReady)
    result = api.eventSynchronize(event_);
  isReached_ = result == cu::kSuccess;
  return isReached_ ? Result<void>() : device_->driver().error(what + " failed", result);
}

} // namespace deft::device
