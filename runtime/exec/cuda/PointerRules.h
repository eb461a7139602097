#pragma once

#include "compiler/spec/Variant.h"
#include "compiler/support/Result.h"
#include "runtime/exec/cuda/CudaPointers.h"

namespace deft::exec {

/// What kernels ask of memory and do not look at: that they can read it by 16 bytes, that its strides are
/// multiples of unitOf(), that rows do not overlap, and that 32 bits of such units reach all of
/// the cache, as far as the host knows its size.
support::Result<void> checkPointers(const spec::Variant &variant, const CudaPointers &pointers);

/// Elements in which the variant's kernels count. The device's twin is kRowUnit (common/row_place.cuh).
int unitOf(const spec::Variant &variant);

/// Of strides that keep the rules, as the variant's kernels take them.
abi::CachePlaces placesOf(const spec::Variant &variant, const abi::CacheLayout &layout);

/// Elements from one query's row of q, or of out, to the next one's.
int qStrideOf(const spec::Variant &variant, const CudaPointers &pointers);
int outStrideOf(const spec::Variant &variant, const CudaPointers &pointers);

} // namespace deft::exec
