#pragma once

#include "runtime/api/Dims.h"

#include <cstddef>
#include <cstdint>
#include <optional>

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

/// Entries of one tensor that share memory.
struct EntryOverlap {
  std::size_t dimension = 0; ///< along which they follow each other
  std::int64_t span = 0;     ///< of an entry, from its first element past its last
};

/// A stride of 0 is none: it gives one entry again and again. As exact and as fast as `overlap`.
std::optional<EntryOverlap> overlapWithin(const Extent &extent);

} // namespace deft::api
