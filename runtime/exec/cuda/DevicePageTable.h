#pragma once

#include "runtime/device/HostMemory.h"
#include "runtime/tree/PagedPool.h"

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace deft::exec {

/// A page table on a device, a pool's or a host's own, at one place for good. Only what changed since the
/// last upload travels: a small kernel reads it out of page-locked memory. One stream at a time and one
/// thread at a time; several tables of one pool know nothing of each other.
class DevicePageTable {
public:
  /// Has room for so many entries of the table.
  static support::Result<std::unique_ptr<DevicePageTable>>
  create(const std::shared_ptr<device::Device> &device, int pages);

  ~DevicePageTable(); ///< waits for the device, which may be reading its memory
  DevicePageTable(const DevicePageTable &) = delete;
  DevicePageTable &operator=(const DevicePageTable &) = delete;

  /// Brings the table to what the pool has now, for the runs behind it on the stream. Not on a stream that is
  /// being captured. Of another pool than in the last upload all of it travels. Waits only where the last
  /// upload but one has not been made yet.
  support::Result<void> upload(const tree::PagedPool &pool, device::cu::Stream stream);

  /// Brings the entries from `first` on to these, likewise. Not of a table that is a pool's.
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
  /// Writes `count` changes; `changeAt` gives each.
  template <typename ChangeAt>
  support::Result<void> write(std::size_t count, ChangeAt changeAt, device::cu::Stream stream);

  std::shared_ptr<device::Device> device_;
  int pages_ = 0;
  device::Kernel writer_;
  device::Buffer table_;
  std::array<Slot, 2> slots_;
  std::size_t next_ = 0;
  const tree::PagedPool *pool_ = nullptr; ///< of the last upload, which may be gone
  std::uint64_t seenChanges_ = 0;         ///< of it
  std::vector<int> entries_;              ///< of a host's own: what was uploaded last
  std::vector<Change> found_;             ///< of the upload at hand
};

} // namespace deft::exec
