#pragma once

/// Flags in memory that is shared by several GPUs and the host.
namespace deft::ptx {

/// A reader of the value also sees all earlier writes of the thread, and all writes that it had observed.
__device__ __forceinline__ void storeReleaseSystem(unsigned long long *to, unsigned long long value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

/// A reader of a value also sees the writes before it.
__device__ __forceinline__ unsigned long long loadAcquireSystem(const unsigned long long *from) {
  unsigned long long value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}

/// For all observers, orders the thread's earlier writes, and those it observed, before its later ones.
__device__ __forceinline__ void fenceSystem() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

/// A clock of the device.
__device__ __forceinline__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

} // namespace deft::ptx
