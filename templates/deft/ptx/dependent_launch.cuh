#pragma once

/// A kernel that the host launches as dependent may start before the one before it has ended (sm_90). On
/// older architectures, and where the host does not ask for it, both calls do nothing.
namespace deft::ptx {

/// From here on the dependent kernel may take what room is left.
__device__ __forceinline__ void allowDependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Waits until the kernel before has ended and its stores are seen.
__device__ __forceinline__ void awaitKernelBefore() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

} // namespace deft::ptx
