#include "runtime/device/SharedMemory.h"

#include <utility>

namespace deft::device {

using support::Result;

namespace {

cu::AllocationProperties propertiesOn(const Device &device) {
  return {.location = {.id = device.facts().ordinal}};
}

} // namespace

SharedMemory::SharedMemory(SharedMemory &&other) noexcept
    : device_(std::move(other.device_)), what_(std::move(other.what_)),
      allocation_(std::exchange(other.allocation_, 0)), address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)), isMapped_(std::exchange(other.isMapped_, false)) {}

SharedMemory::~SharedMemory() {
  if (!device_)
    return;
  const Device::Current current(*device_);
  const cu::Api &api = device_->api();
  if (isMapped_)
    (void)api.memUnmap(address_, bytes_);
  if (address_ != 0)
    (void)api.memAddressFree(address_, bytes_);
  if (allocation_ != 0)
    (void)api.memRelease(allocation_);
}

Result<void> SharedMemory::check(const std::string &whatFailed, cu::Result result) const {
  return device_->driver().check("cannot " + whatFailed + " " + what_ + " on " + device_->facts().name,
                                 result);
}

Result<void> SharedMemory::roundUp(std::size_t bytes) {
  const cu::AllocationProperties properties = propertiesOn(*device_);
  std::size_t unit = 0;
  if (auto asked = check("share memory for", device_->api().memGetAllocationGranularity(
                                                 &unit, &properties, cu::kGranularityRecommended));
      !asked)
    return asked;
  bytes_ = (bytes + unit - 1) / unit * unit;
  return {};
}

Result<void> SharedMemory::map() {
  const cu::Api &api = device_->api();
  if (auto reserved = check("reserve addresses for", api.memAddressReserve(&address_, bytes_, 0, 0, 0));
      !reserved)
    return reserved;
  if (auto mapped = check("map", api.memMap(address_, bytes_, 0, allocation_, 0)); !mapped)
    return mapped;
  isMapped_ = true;
  const cu::MemoryAccess access{.location = {.id = device_->facts().ordinal}};
  return check("have access to", api.memSetAccess(address_, bytes_, &access, 1));
}

/// On a stream of its own, since a program may be capturing on any other.
Result<void> SharedMemory::clear() const {
  const cu::Api &api = device_->api();
  cu::Stream stream = nullptr;
  if (auto made = check("make a stream for", api.streamCreate(&stream, cu::kStreamNonBlocking)); !made)
    return made;
  auto cleared = check("clear", api.memsetD8Async(address_, 0, bytes_, stream));
  if (cleared)
    cleared = check("clear", api.streamSynchronize(stream));
  (void)api.streamDestroy(stream);
  return cleared;
}

Result<SharedMemory> SharedMemory::make(const std::shared_ptr<Device> &device, std::size_t bytes,
                                        const std::string &what) {
  SharedMemory made(device, what);
  const Device::Current current(*device);
  if (auto rounded = made.roundUp(bytes); !rounded)
    return rounded.error();
  const cu::AllocationProperties properties = propertiesOn(*device);
  if (auto allocated = made.check("allocate " + std::to_string(bytes) + " bytes for",
                                  device->api().memCreate(&made.allocation_, made.bytes_, &properties, 0));
      !allocated) {
    made.allocation_ = 0;
    return allocated.error();
  }
  if (auto mapped = made.map(); !mapped)
    return mapped.error();
  if (auto cleared = made.clear(); !cleared)
    return cleared.error();
  return made;
}

Result<SharedMemory> SharedMemory::open(const std::shared_ptr<Device> &device, int handle, std::size_t bytes,
                                        const std::string &what) {
  SharedMemory opened(device, what);
  const Device::Current current(*device);
  if (auto rounded = opened.roundUp(bytes); !rounded)
    return rounded.error();
  // The driver takes the file descriptor's number for a pointer.
  void *const number = reinterpret_cast<void *>(static_cast<std::intptr_t>(handle));
  if (auto imported =
          opened.check("take", device->api().memImport(&opened.allocation_, number, cu::kHandleFile));
      !imported) {
    opened.allocation_ = 0;
    return imported.error();
  }
  if (auto mapped = opened.map(); !mapped)
    return mapped.error();
  return opened;
}

Result<int> SharedMemory::handle() const {
  const Device::Current current(*device_);
  int handle = -1;
  if (auto exported = check("hand on", device_->api().memExport(&handle, allocation_, cu::kHandleFile, 0));
      !exported)
    return exported.error();
  return handle;
}

} // namespace deft::device
