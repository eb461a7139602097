#pragma once

#include "compiler/spec/Variant.h"
#include "compiler/support/Result.h"
#include "runtime/exec/cuda/CudaPointers.h"

namespace deft::exec {

/// Checks the rules that kernels rely on without checking them: pointers are aligned to 16 bytes, strides are
/// multiples of unitOf(), rows do not overlap, and offsets in such units reach the whole cache in 32 bits, if
/// the host knows its size.
support::Result<void> checkPointers(const spec::Variant &variant, const CudaPointers &pointers);

/// The elements in which the variant's kernels count. The device's twin is kRowUnit (common/row_place.cuh).
int unitOf(const spec::Variant &variant);

/// The strides in the form that the variant's kernels take. They must pass checkPointers().
abi::CachePlaces placesOf(const spec::Variant &variant, const abi::CacheLayout &layout);

/// Elements between the rows of consecutive queries, in q and in out.
int qStrideOf(const spec::Variant &variant, const CudaPointers &pointers);
int outStrideOf(const spec::Variant &variant, const CudaPointers &pointers);

} // namespace deft::exec
