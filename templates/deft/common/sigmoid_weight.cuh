#pragma once

#include "deft/ptx/convert.cuh"
#include "deft/types.cuh"

namespace deft {

/// sigmoid(score); a hidden score of -inf gives 0.
__device__ __forceinline__ float sigmoidWeight(float score) {
  return __fdividef(1.f, 1.f + ptx::exp2Fast(-score * kLog2e));
}

} // namespace deft
