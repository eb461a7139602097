#pragma once

/// Flags in memory that several GPUs and the host see.
namespace deft::ptx {

/// All that the thread has written, or has seen written, is there for whoever sees the value.
__device__ __forceinline__ void storeReleaseSystem(unsigned long long *to, unsigned long long value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

/// Who sees a value sees what was written before it.
__device__ __forceinline__ unsigned long long loadAcquireSystem(const unsigned long long *from) {
  unsigned long long value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}

/// Orders what the thread has written, or has seen written, before what it writes from now on, for all.
__device__ __forceinline__ void fenceSystem() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

/// A clock of the device.
__device__ __forceinline__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

} // namespace deft::ptx
