#pragma once

#include "deft/sm90/attend.cuh"

/// Attention for Hopper, by wgmma and the copy engine. Head dims from 64 on.
namespace deft::sm90 {

template <class Config, class Variant>
__device__ __forceinline__ void attend(const abi::AttendArgs &args, const typename Variant::Params &params) {
  Attend<Factored<Config>, Variant>::run(args, params);
}

} // namespace deft::sm90
