#pragma once

#include "deft/sm80_latent/attend.cuh"

/// Attention over latent caches for GPUs from Ampere on, by mma.sync and cp.async: the values of a token are
/// the first columns of its key.
namespace deft::sm80_latent {

template <class Config, class Variant>
__device__ __forceinline__ void attend(const abi::AttendArgs &args, const typename Variant::Params &params) {
  Attend<Multiplied<Config>, Variant>::run(args, params);
}

} // namespace deft::sm80_latent
