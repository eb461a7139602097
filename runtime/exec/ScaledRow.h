#pragma once

#include "compiler/spec/Tensors.h"
#include "runtime/exec/Half.h"

#include <cstddef>
#include <cstring>

/// Rows of K in host memory, which may contain scales (LANGUAGE.md, rule A11).
namespace deft::exec {

/// The byte offset of the scale of a column of V, in a row that begins at element `first`.
inline std::ptrdiff_t scaleAt(const spec::Tensors &tensors, long long first, int column) {
  return static_cast<std::ptrdiff_t>(first) + tensors.v.dim +
         std::ptrdiff_t{column / tensors.scaleColumns} * spec::Tensors::kScaleBytes;
}
inline float scaleOf(const spec::Tensors &tensors, const void *memory, long long first, int column) {
  float scale = 0;
  std::memcpy(&scale, static_cast<const std::byte *>(memory) + scaleAt(tensors, first, column), sizeof scale);
  return scale;
}
inline void setScale(const spec::Tensors &tensors, void *memory, long long first, int column, float scale) {
  std::memcpy(static_cast<std::byte *>(memory) + scaleAt(tensors, first, column), &scale, sizeof scale);
}

/// The columns of a row behind V's, which have q's dtype if the row contains scales.
inline const std::byte *ropeOf(const spec::Tensors &tensors, const void *memory, long long first) {
  return static_cast<const std::byte *>(memory) + first + tensors.ropeOffset();
}

/// The value of a column of K. Products may take one with a scale rounded to q's dtype.
inline float keyElement(const spec::Tensors &tensors, const void *memory, long long first, int column) {
  if (!tensors.hasScales())
    return toFloat(bitsAt(memory, first + column, tensors.k.dtype), tensors.k.dtype);
  if (column >= tensors.v.dim)
    return toFloat(bitsAt(ropeOf(tensors, memory, first), column - tensors.v.dim, tensors.q.dtype),
                   tensors.q.dtype);
  return toFloat(bitsAt(memory, first + column, tensors.k.dtype), tensors.k.dtype) *
         scaleOf(tensors, memory, first, column);
}

/// Sets a column of K to `value`, or to the nearest number that its scale allows. Returns the number.
inline float setKeyElement(const spec::Tensors &tensors, void *memory, long long first, int column,
                           float value) {
  if (!tensors.hasScales())
    setBitsAt(memory, first + column, tensors.k.dtype, fromFloat(value, tensors.k.dtype));
  else if (column >= tensors.v.dim)
    setBitsAt(const_cast<std::byte *>(ropeOf(tensors, memory, first)), column - tensors.v.dim,
              tensors.q.dtype, fromFloat(value, tensors.q.dtype));
  else
    setBitsAt(memory, first + column, tensors.k.dtype,
              fromFloat(value / scaleOf(tensors, memory, first, column), tensors.k.dtype));
  return keyElement(tensors, memory, first, column);
}

} // namespace deft::exec
