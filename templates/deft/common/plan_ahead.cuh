#pragma once

#include "deft/abi.h"
#include "deft/ptx/prefetch.cuh"

namespace deft {

/// Where a block's first tokens lie is a chain of loads (item, run, page), and what a merge reads is another,
/// and nothing of it need be in L2 when the launch begins. So all blocks together ask for the plan and the
/// page table as they start: only the first load of a chain then has memory's latency. For some threads of
/// each block, numbered from 0.
__device__ __forceinline__ void askForPlan(const abi::AttendArgs &args, int thread, int threads) {
  const int line = static_cast<int>(blockIdx.x) * threads + thread;
  if (line < args.planLines)
    ptx::prefetch(reinterpret_cast<const char *>(args.callerIndex) + line * abi::kLineBytes);
  if (line < args.tableLines)
    ptx::prefetch(reinterpret_cast<const char *>(args.pageTable) + line * abi::kLineBytes);
}

} // namespace deft
