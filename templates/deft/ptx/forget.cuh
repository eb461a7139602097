#pragma once

/// No instruction at all: the compiler forgets what it knows of a value, so that it can neither fold it into
/// others, nor hold what follows from it, nor take it for the whole warp's.
namespace deft::ptx {

/// And the value is there from here on.
__device__ __forceinline__ void forgetHere(float &x) { asm volatile("" : "+f"(x)); }
__device__ __forceinline__ void forgetHere(int &x) { asm volatile("" : "+r"(x)); }

__device__ __forceinline__ void forget(int &x) { asm("" : "+r"(x)); }
template <class T> __device__ __forceinline__ void forget(T *&pointer) { asm("" : "+l"(pointer)); }

} // namespace deft::ptx
