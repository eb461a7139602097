#pragma once

#include "deft/sm90_latent/attend.cuh"

/// Attention over latent caches for Hopper, by wgmma and the copy engine. V is the first columns of K in the
/// same memory, so a tile of the cache is read once for both.
namespace deft::sm90_latent {

template <class Config, class Variant>
__device__ __forceinline__ void attend(const abi::AttendArgs &args, const typename Variant::Params &params) {
  Attend<Known<Config>, Variant>::run(args, params);
}

} // namespace deft::sm90_latent
