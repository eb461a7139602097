#include "runtime/exec/cuda/DevicePageTable.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace cu = device::cu;

namespace {

constexpr int kThreads = 256;

/// table[change.place] = change.page, a thread a change.
const char *const kWritePtx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry deft_write_pages(.param .u64 table, .param .u64 changes, .param .u32 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %d<7>;
  ld.param.u64 %d1, [table];
  ld.param.u64 %d2, [changes];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.u32 %d3, %r5, 8;
  add.u64 %d4, %d2, %d3;
  ld.volatile.global.v2.u32 {%r6, %r7}, [%d4];
  mul.wide.u32 %d5, %r6, 4;
  add.u64 %d6, %d1, %d5;
  st.global.u32 [%d6], %r7;
DONE:
  ret;
}
)";

Error usage(std::string message, std::string hint) {
  return Error{ErrorCode::Usage, std::move(message), std::move(hint)};
}

} // namespace

DevicePageTable::DevicePageTable(const std::shared_ptr<device::Device> &device, int pages,
                                 device::Kernel writer)
    : device_(device), pages_(pages), writer_(std::move(writer)), table_(device),
      slots_{Slot(device), Slot(device)} {}

Result<std::unique_ptr<DevicePageTable>>
DevicePageTable::create(const std::shared_ptr<device::Device> &device, int pages) {
  auto writer = device::Kernel::load(device, kWritePtx, "deft_write_pages", kThreads, 0);
  if (!writer)
    return writer.error();
  std::unique_ptr<DevicePageTable> table(new DevicePageTable(device, pages, std::move(*writer)));
  const auto most = static_cast<std::size_t>(std::max(pages, tree::PagedPool::kLeastRememberedChanges));
  if (auto reserved = table->table_.reserve(static_cast<std::size_t>(pages) * sizeof(int), "the page table");
      !reserved)
    return reserved.error();
  for (Slot &slot : table->slots_) {
    if (auto reserved = slot.memory.reserve(most * sizeof(Change), "changes of the page table"); !reserved)
      return reserved.error();
    if (auto created = slot.applied.create(); !created)
      return created.error();
  }
  return table;
}

DevicePageTable::~DevicePageTable() {
  for (const Slot &slot : slots_)
    (void)slot.applied.wait("the last upload of a page table");
}

Result<void> DevicePageTable::checkStream(cu::Stream stream) const {
  const auto capturing = device_->isCapturing(stream);
  if (!capturing)
    return capturing.error();
  if (*capturing)
    return usage("a page table cannot be uploaded on a stream that is being captured",
                 "upload before the capture, and before each replay");
  return {};
}

template <typename ChangeAt>
Result<void> DevicePageTable::write(std::size_t count, ChangeAt changeAt, cu::Stream stream) {
  const device::Device::Current current(*device_);
  if (auto checked = checkStream(stream); !checked)
    return checked;
  Slot &slot = slots_[next_];
  if (auto free = slot.applied.wait("the upload of a page table"); !free)
    return free;
  auto *to = slot.memory.as<Change>();
  for (std::size_t i = 0; i < count; ++i)
    to[i] = changeAt(i);
  int *tableOnDevice = table_.as<int>();
  const Change *from = slot.memory.onDevice<Change>();
  auto number = static_cast<unsigned>(count);
  void *params[] = {&tableOnDevice, &from, &number};
  if (auto launched = writer_.launch((number + kThreads - 1) / kThreads, params, stream); !launched)
    return launched;
  if (auto marked = slot.applied.record(stream, "the upload of a page table"); !marked)
    return marked;
  next_ = 1 - next_;
  return {};
}

Result<void> DevicePageTable::upload(const tree::PagedPool &pool, cu::Stream stream) {
  const std::vector<int> &table = pool.pageTable();
  if (!entries_.empty())
    return usage("the page table has the host's own entries, not those of a pool", "make one for each");
  if (table.size() > static_cast<std::size_t>(pages_))
    return usage("the page table has " + std::to_string(table.size()) + " pages, there is room for " +
                     std::to_string(pages_) + " on the device",
                 "make it with more room");
  const bool isOther = pool_ != nullptr && (pool_ != &pool || pool.tableChanges() < seenChanges_);
  const auto changes = isOther ? std::nullopt : pool.changesSince(seenChanges_);
  const std::size_t count = changes ? changes->size() : table.size();
  if (count == 0)
    return {};
  const auto changeAt = [&](std::size_t i) {
    const int place = changes ? (*changes)[i] : static_cast<int>(i);
    return Change{place, table[static_cast<std::size_t>(place)]};
  };
  if (auto written = write(count, changeAt, stream); !written)
    return written;
  pool_ = &pool;
  seenChanges_ = pool.tableChanges();
  return {};
}

Result<void> DevicePageTable::upload(std::span<const int> entries, int first, cu::Stream stream) {
  if (seenChanges_ > 0)
    return usage("the page table is that of a pool, not of entries of the host's own", "make one for each");
  if (first < 0 || entries.size() + static_cast<std::size_t>(first) > static_cast<std::size_t>(pages_))
    return usage("the entries from " + std::to_string(first) + " to " +
                     std::to_string(first + static_cast<std::int64_t>(entries.size())) +
                     " are not within the " + std::to_string(pages_) +
                     " that there is room for on the device",
                 "make it with more room");
  constexpr int kNeverWritten = std::numeric_limits<int>::min();
  entries_.resize(static_cast<std::size_t>(pages_), kNeverWritten);
  found_.clear();
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (const std::size_t place = static_cast<std::size_t>(first) + i; entries[i] != entries_[place])
      found_.push_back({static_cast<int>(place), entries[i]});
  if (found_.empty())
    return {};
  if (auto written = write(found_.size(), [&](std::size_t i) { return found_[i]; }, stream); !written)
    return written;
  for (const Change &change : found_)
    entries_[static_cast<std::size_t>(change.place)] = change.page;
  return {};
}

} // namespace deft::exec
