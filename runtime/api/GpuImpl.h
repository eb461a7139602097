#pragma once

#include "runtime/exec/cuda/CudaKernels.h"
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
  std::shared_ptr<const exec::CudaParams> params;
  plan::Reach reach; ///< of the mask, with these parameters
};

} // namespace deft
