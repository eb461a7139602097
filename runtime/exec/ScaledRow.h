#pragma once

#include "compiler/spec/Tensors.h"
#include "runtime/exec/Half.h"

#include <cstddef>
#include <cstring>

/// Rows of K in host memory, which may have scales in them (LANGUAGE.md, rule A11).
namespace deft::exec {

/// Where the scale of a column of V lies, of a row that begins at element `first`.
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

/// The columns behind V's, which have q's dtype where there are scales.
inline const std::byte *ropeOf(const spec::Tensors &tensors, const void *memory, long long first) {
  return static_cast<const std::byte *>(memory) + first + tensors.ropeOffset();
}

/// A column of K as products take it.
inline float keyElement(const spec::Tensors &tensors, const void *memory, long long first, int column) {
  if (!tensors.hasScales())
    return toFloat(bitsAt(memory, first + column, tensors.k.dtype), tensors.k.dtype);
  if (column >= tensors.v.dim)
    return toFloat(bitsAt(ropeOf(tensors, memory, first), column - tensors.v.dim, tensors.q.dtype),
                   tensors.q.dtype);
  const float product = toFloat(bitsAt(memory, first + column, tensors.k.dtype), tensors.k.dtype) *
                        scaleOf(tensors, memory, first, column);
  return toFloat(fromFloat(product, tensors.q.dtype), tensors.q.dtype);
}

/// Sets a column of K to `value`, or to the number nearest to it that its scale leaves. Gives which.
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
