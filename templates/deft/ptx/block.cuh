#pragma once

/// A block's shared memory and registers, and the launch's size.
namespace deft::ptx {

/// The launch's dynamic shared memory, at an address that is a multiple of kAlignment.
template <int kAlignment> __device__ __forceinline__ char *dynamicShared() {
  extern __shared__ __align__(kAlignment) char memory[];
  return memory;
}

/// The address as instructions for shared memory need it.
__device__ __forceinline__ unsigned sharedAddress(const void *pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// The number of blocks of the launch, read at the point of the call: if hoisted, earlier code waits for it.
__device__ __forceinline__ int blocksReadHere() {
  int blocks;
  asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(blocks));
  return blocks;
}

/// Changes the warpgroup's registers per thread (sm_90): to fewer, or to more that others have released.
template <int kRegisters> __device__ __forceinline__ void keepRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters> __device__ __forceinline__ void takeRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

} // namespace deft::ptx
