#pragma once

#include "deft/abi.h"

namespace deft {

/// One thread checks the watch for one run. Reading the host's memory takes a microsecond or two, so the
/// block should have no other work. Volatile: the host writes while the kernel runs.
__device__ __forceinline__ void watchPlan(abi::PlanWatch *watch, unsigned long long *runsOfPlan) {
  if (threadIdx.x != 0)
    return;
  volatile abi::PlanWatch *host = watch;
  const unsigned long long tree = host->treeGeneration, plan = host->planGeneration;
  const unsigned long long freeRuns = host->freeRuns;
  const unsigned long long runs = *runsOfPlan; // runs of a plan are sequential
  *runsOfPlan = runs + 1;
  if (plan < tree && runs >= freeRuns)
    host->staleSeen = tree;
}

} // namespace deft
