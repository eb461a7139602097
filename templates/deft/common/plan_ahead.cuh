#pragma once

#include "deft/abi.h"
#include "deft/ptx/prefetch.cuh"

namespace deft {

/// A chain of loads (item, run, page) leads to a block's first tokens, and another to a merge's input. At the
/// start of the launch, L2 may hold none of it. So all blocks together prefetch the plan and the page table:
/// then only the first load of a chain has the latency of memory. Called by some threads of each block,
/// numbered from 0.
__device__ __forceinline__ void askForPlan(const abi::AttendArgs &args, int thread, int threads) {
  const int line = static_cast<int>(blockIdx.x) * threads + thread;
  if (line < args.planLines)
    ptx::prefetch(reinterpret_cast<const char *>(args.callerIndex) + line * abi::kLineBytes);
  if (line < args.tableLines)
    ptx::prefetch(reinterpret_cast<const char *>(args.pageTable) + line * abi::kLineBytes);
}

} // namespace deft
