#pragma once

#include "deft/sm80/attend.cuh"

/// Attention for GPUs from Ampere on, by mma.sync and cp.async. Head dims that are multiples of 16.
namespace deft::sm80 {

template <class Config, class Variant>
__device__ __forceinline__ void attend(const abi::AttendArgs &args, const typename Variant::Params &params) {
  Attend<Config, Variant>::run(args, params);
}

} // namespace deft::sm80
