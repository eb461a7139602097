#pragma once

/// Emits no instruction. The compiler forgets its knowledge about a value: it cannot fold it into others,
/// keep values that depend on it, or treat it as uniform in the warp.
namespace deft::ptx {

/// In addition, the value is computed at this point.
__device__ __forceinline__ void forgetHere(float &x) { asm volatile("" : "+f"(x)); }
__device__ __forceinline__ void forgetHere(int &x) { asm volatile("" : "+r"(x)); }

__device__ __forceinline__ void forget(int &x) { asm("" : "+r"(x)); }
template <class T> __device__ __forceinline__ void forget(T *&pointer) { asm("" : "+l"(pointer)); }

} // namespace deft::ptx
