#pragma once

#include <deft/attention.hpp>
#include <deft/c/quantize.h>

#include <cstdint>
#include <span>

/// Converts rows of 16-bit floats to rows of an 8-bit cache, in host memory.
///
///   deft::quantize({.tokens = n, .kvHeads = 8, .dim = 128}, keys, scales, cache).value();
///
/// An attention uses the values of these numbers as they are. Apply the scales in the spec. For K, let
/// `score` multiply `s` by a parameter. For V, use a parameter in `output` or, for scales of tokens, in
/// `value`.
namespace deft {

struct QuantizeShape {
  std::int64_t tokens = 0;
  int kvHeads = 1;
  int dim = 0;              ///< head_dim
  DType from = DType::BF16; ///< F16 or BF16
  DType to = DType::F8E4M3; ///< F8E4M3 or F8E5M2
};

/// Works like deft_quantize. `scales` has one scale for all KV heads, one for each, or one for each KV head
/// of each token.
inline Result<void> quantize(const QuantizeShape &shape, const void *from, std::span<const float> scales,
                             void *to) {
  deft_quantize_shape own{};
  own.size = sizeof own;
  own.tokens = shape.tokens;
  own.kv_heads = shape.kvHeads;
  own.dim = shape.dim;
  own.from = static_cast<deft_dtype>(shape.from);
  own.to = static_cast<deft_dtype>(shape.to);
  const float none = 0;
  return detail::done(deft_quantize(&own, from, scales.empty() ? &none : scales.data(), scales.size(), to));
}

} // namespace deft
