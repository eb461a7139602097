#pragma once

#include "runtime/exec/cuda/CudaKernels.h"
#include "runtime/exec/cuda/PlanRoom.h"
#include "runtime/plan/Planner.h"
#include "runtime/plan/Reach.h"

#include <deft/gpu.hpp>

namespace deft {

struct Gpu::Impl {
  GpuFacts facts;
  std::shared_ptr<device::Device> device;
};

struct GpuAttention::Impl {
  Gpu gpu;
  Attention attention;
  std::shared_ptr<const exec::CudaKernels> kernels;
  Result<std::shared_ptr<const exec::CudaParams>> params; ///< an error: one has no value, so nothing runs
  plan::Reach reach;                                      ///< of the mask, with these parameters
};

/// For plans of so many phases: a query may be merged, of all partials that there are.
exec::PlanRoom toInternal(const GpuRoom &room, std::size_t phases);

/// What a tree is planned as that does not fit the room of a captured graph otherwise: roomFor() has room for
/// it, whatever the tree is.
constexpr plan::Choice kPlanOfLeastRoom{spec::Partition::Union, /*chunkTokens=*/0};

} // namespace deft
