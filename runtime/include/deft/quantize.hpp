#pragma once

#include <deft/attention.hpp>
#include <deft/result.hpp>

#include <cstdint>
#include <span>

/// Rows of 16-bit floats become rows of a cache of 8-bit floats, in the host's memory.
///
///   deft::quantize({.tokens = n, .kvHeads = 8, .dim = 128}, keys, scales, cache).value();
///
/// An attention reads what the bits mean; the scale is the caller's to give back: K's as a parameter that
/// `score` multiplies `s` by, V's as one that `output` or, where each token has its own, `value` multiplies
/// by.
namespace deft {

struct QuantizeShape {
  std::int64_t tokens = 0;
  int kvHeads = 1;
  int dim = 0;              ///< head_dim
  DType from = DType::BF16; ///< F16 or BF16
  DType to = DType::F8E4M3; ///< F8E4M3 or F8E5M2
};

/// to = from / scale, divided in f32, to nearest even; what is too large becomes the largest number
/// (infinities, too), and NaN stays NaN. `from` and `to` are [token][kvHead][dim], packed, and do not
/// overlap. `scales` has one for all KV heads, one each, or one for each KV head of each token
/// ([token][kvHead]), finite and above 0.
DEFT_API Result<void> quantize(const QuantizeShape &shape, const void *from, std::span<const float> scales,
                               void *to);

} // namespace deft
