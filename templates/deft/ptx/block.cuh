#pragma once

/// What a block has and what it knows of its launch.
namespace deft::ptx {

/// The launch's dynamic shared memory, at an address that is a multiple of kAlignment.
template <int kAlignment> __device__ __forceinline__ char *dynamicShared() {
  extern __shared__ __align__(kAlignment) char memory[];
  return memory;
}

/// As the instructions that read and write shared memory name it.
__device__ __forceinline__ unsigned sharedAddress(const void *pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// The launch's blocks, read where this stands: sooner, what comes before would wait for it.
__device__ __forceinline__ int blocksReadHere() {
  int blocks;
  asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(blocks));
  return blocks;
}

/// A warpgroup's registers a thread from here on (sm_90): fewer, or more of those that others have given.
template <int kRegisters> __device__ __forceinline__ void keepRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters> __device__ __forceinline__ void takeRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

} // namespace deft::ptx
