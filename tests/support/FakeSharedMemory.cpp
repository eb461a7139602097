#include "runtime/device/DriverApi.h"
#include "tests/support/FakeCuda.h"

#include <sys/mman.h>
#include <unistd.h>

/// Memory that GPUs and processes share: a file in memory stands for the physical memory, so that processes
/// hand it on as they do with a GPU's. An allocation is its file descriptor plus 1.

namespace cu = deft::device::cu;
using deft::fake_cuda::note;

namespace {

constexpr cu::Result kInvalidValue = 1;

void *pointerOf(cu::DevicePtr address) {
  return reinterpret_cast<void *>(static_cast<std::uintptr_t>(address)); // NOLINT(performance-no-int-to-ptr)
}

} // namespace

extern "C" {

int cuMemGetAllocationGranularity(std::size_t *bytes, const cu::AllocationProperties *, int) {
  *bytes = std::size_t{2} << 20;
  return note({.name = "cuMemGetAllocationGranularity"});
}
int cuMemCreate(cu::Allocation *made, std::size_t bytes, const cu::AllocationProperties *,
                unsigned long long) {
  if (const cu::Result failed = note({.name = "cuMemCreate", .bytes = bytes}))
    return failed;
  const int file = memfd_create("fake_cuda", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0)
    return cu::kOutOfMemory;
  *made = static_cast<cu::Allocation>(file) + 1;
  return cu::kSuccess;
}
int cuMemRelease(cu::Allocation allocation) {
  close(static_cast<int>(allocation) - 1);
  return note({.name = "cuMemRelease"});
}
int cuMemExportToShareableHandle(void *handle, cu::Allocation allocation, int, unsigned long long) {
  const int file = dup(static_cast<int>(allocation) - 1);
  std::memcpy(handle, &file, sizeof file);
  return note({.name = "cuMemExportToShareableHandle"});
}
int cuMemImportFromShareableHandle(cu::Allocation *opened, void *handle, int) {
  if (const cu::Result failed = note({.name = "cuMemImportFromShareableHandle"}))
    return failed;
  const int file = dup(static_cast<int>(reinterpret_cast<std::intptr_t>(handle)));
  *opened = static_cast<cu::Allocation>(file) + 1;
  return file < 0 ? kInvalidValue : cu::kSuccess;
}
int cuMemAddressReserve(cu::DevicePtr *address, std::size_t bytes, std::size_t, cu::DevicePtr,
                        unsigned long long) {
  void *const reserved = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *address = reinterpret_cast<cu::DevicePtr>(reserved);
  return reserved == MAP_FAILED ? cu::kOutOfMemory : note({.name = "cuMemAddressReserve"});
}
int cuMemAddressFree(cu::DevicePtr address, std::size_t bytes) {
  munmap(pointerOf(address), bytes);
  return note({.name = "cuMemAddressFree"});
}
int cuMemMap(cu::DevicePtr address, std::size_t bytes, std::size_t offset, cu::Allocation allocation,
             unsigned long long) {
  if (const cu::Result failed = note({.name = "cuMemMap", .bytes = bytes}))
    return failed;
  void *const mapped = mmap(pointerOf(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
                            static_cast<int>(allocation) - 1, static_cast<off_t>(offset));
  return mapped == MAP_FAILED ? kInvalidValue : cu::kSuccess;
}
int cuMemUnmap(cu::DevicePtr address, std::size_t bytes) {
  mmap(pointerOf(address), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return note({.name = "cuMemUnmap"});
}
int cuMemSetAccess(cu::DevicePtr address, std::size_t bytes, const cu::MemoryAccess *, std::size_t) {
  if (const cu::Result failed = note({.name = "cuMemSetAccess"}))
    return failed;
  return mprotect(pointerOf(address), bytes, PROT_READ | PROT_WRITE) == 0 ? cu::kSuccess : kInvalidValue;
}

} // extern "C"
