#pragma once

/// A kernel that is launched as a dependent one may start before the previous kernel ends (sm_90). On older
/// architectures, or without that launch attribute, both calls do nothing.
namespace deft::ptx {

/// From here on the dependent kernel may occupy free resources.
__device__ __forceinline__ void allowDependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Waits until the previous kernel has ended and its stores are visible.
__device__ __forceinline__ void awaitKernelBefore() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

} // namespace deft::ptx
