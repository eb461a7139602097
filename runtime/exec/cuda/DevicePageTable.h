#pragma once

#include "runtime/device/HostMemory.h"
#include "runtime/tree/PagedPool.h"

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace deft::exec {

/// A page table at a fixed address on a device, for a pool or for pages that the host manages. An upload
/// copies only changes: a small kernel reads them from page-locked memory. For one stream and one thread at a
/// time; several tables of one pool are independent.
class DevicePageTable {
public:
  /// Makes room for `pages` entries.
  static support::Result<std::unique_ptr<DevicePageTable>>
  create(const std::shared_ptr<device::Device> &device, int pages);

  ~DevicePageTable(); ///< waits for the device, which may be reading it
  DevicePageTable(const DevicePageTable &) = delete;
  DevicePageTable &operator=(const DevicePageTable &) = delete;

  /// Brings the table to the pool's current state, for later runs on the stream, which must not be capturing.
  /// Copies the whole table if the last upload was of another pool. Waits only if the last upload but one is
  /// not finished.
  support::Result<void> upload(const tree::PagedPool &pool, device::cu::Stream stream);

  /// Sets the entries from `first` on in the same way. Not for a table of a pool.
  support::Result<void> upload(std::span<const int> entries, int first, device::cu::Stream stream);

  const int *data() const { return table_.as<int>(); }
  int pages() const { return pages_; }

private:
  struct Change { ///< as the kernel reads it
    int place = 0;
    int page = 0;
  };
  struct Slot {
    explicit Slot(const std::shared_ptr<device::Device> &device) : memory(device), applied(device) {}
    device::HostMemory memory;
    device::Mark applied;
  };

  DevicePageTable(const std::shared_ptr<device::Device> &device, int pages, device::Kernel writer);
  support::Result<void> checkStream(device::cu::Stream stream) const;
  /// Writes `count` changes; `changeAt` returns each.
  template <typename ChangeAt>
  support::Result<void> write(std::size_t count, ChangeAt changeAt, device::cu::Stream stream);

  std::shared_ptr<device::Device> device_;
  int pages_ = 0;
  device::Kernel writer_;
  device::Buffer table_;
  std::array<Slot, 2> slots_;
  std::size_t next_ = 0;
  const tree::PagedPool *pool_ = nullptr; ///< of the last upload; may no longer exist
  std::uint64_t seenChanges_ = 0;         ///< changes of that pool at that time
  std::vector<int> entries_;              ///< for pages of the host: the entries uploaded last
  std::vector<Change> found_;             ///< of the current upload
};

} // namespace deft::exec
