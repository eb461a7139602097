#pragma once

/// mbarrier (sm_80; try_wait sm_90): phases that threads and copies complete together.
namespace deft::ptx {

__device__ __forceinline__ void mbarrierInit(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/// Makes the initialisation visible to the asynchronous proxy; call it before the block's first barrier.
__device__ __forceinline__ void mbarrierInitFence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrierArrive(unsigned barrier, int arrivals = 1) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/// Without a branch, so that it can be placed between products.
__device__ __forceinline__ void mbarrierArriveIf(bool condition, unsigned barrier, int arrivals) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\n"
               "@p mbarrier.arrive.shared::cta.b64 _, [%0], %1;\n}" ::"r"(barrier),
               "r"(arrivals), "r"(static_cast<int>(condition))
               : "memory");
}

/// One arrival on the barrier, made when the thread's cp.async copies so far have landed.
__device__ __forceinline__ void mbarrierArriveAfterCopies(unsigned barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void mbarrierWait(unsigned barrier, unsigned parity) {
  asm volatile("{\n.reg .pred p;\n"
               "waiting_%=:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
               "@p bra passed_%=;\nbra waiting_%=;\npassed_%=:\n}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}

/// Whether the phase is complete, without waiting. If it is, earlier writes are visible.
__device__ __forceinline__ bool mbarrierIsComplete(unsigned barrier, unsigned parity) {
  int isComplete;
  asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
               "selp.s32 %0, 1, 0, p;\n}"
               : "=r"(isComplete)
               : "r"(barrier), "r"(parity)
               : "memory");
  return isComplete != 0;
}

/// Orders shared memory written by ordinary stores or cp.async before reads by wgmma and bulk copies.
__device__ __forceinline__ void fenceAsyncProxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

} // namespace deft::ptx
