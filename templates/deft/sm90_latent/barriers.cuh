#pragma once

#include "deft/ptx/named_barrier.cuh"
#include "deft/sm90_latent/layout.cuh"

/// Named barriers of the computing warpgroups.
namespace deft::sm90_latent {

/// Numbers of the barriers: kOfGroup + g is that of warpgroup g.
enum Barrier { kOfGroup = 1, kOfBoth = kOfGroup + kComputingGroups };

/// Waits until all warps of the caller's warpgroup have arrived.
__device__ __forceinline__ void meetGroup(int group) { ptx::namedBarrierSync(kOfGroup + group, 128); }
/// The same for the warps of both warpgroups.
__device__ __forceinline__ void meetBoth() { ptx::namedBarrierSync(kOfBoth, 128 * kComputingGroups); }

} // namespace deft::sm90_latent
