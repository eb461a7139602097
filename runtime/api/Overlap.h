#pragma once

#include "runtime/api/Dims.h"

/// Whether two tensors have memory in common.
namespace deft::api {

/// Where the elements of a tensor lie.
struct Extent {
  std::uintptr_t begin = 0; ///< of the element at the origin; 0: there is no tensor
  std::int64_t elementBytes = 0;
  Sizes shape;
  Sizes strides; ///< in elements, none less than 0
};

/// Of the memory of one device. Exact: tensors that are interleaved, such as heads of one row, have none in
/// common. Quick where all of one lies before the other. (Strides of which no two divide each other could
/// take for ever; of those that take long it is true.)
bool overlap(const Extent &a, const Extent &b);

} // namespace deft::api
