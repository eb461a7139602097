#pragma once

#include "runtime/api/Dims.h"

/// Whether two tensors share memory.
namespace deft::api {

/// The memory of a tensor's elements.
struct Extent {
  std::uintptr_t begin = 0; ///< of the element at the origin; 0: no tensor
  std::int64_t elementBytes = 0;
  Sizes shape;
  Sizes strides; ///< in elements, never negative
};

/// For tensors on the same device. Exact: interleaved tensors, such as heads of one row, do not overlap. Fast
/// if one lies entirely before the other. (Strides that do not divide each other could take very long; the
/// search is then cut off, and the result is true.)
bool overlap(const Extent &a, const Extent &b);

} // namespace deft::api
