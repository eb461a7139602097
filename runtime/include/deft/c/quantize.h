#pragma once

#include <deft/c/tensor.h>

/// Rows of 16-bit floats become rows of a cache of 8-bit floats, in the host's memory.
///
/// An attention uses the values of these numbers as they are. Apply the scales in the spec: K's as a
/// parameter with which `score` multiplies `s`, V's as one in `output` or, for scales of tokens, in `value`.

DEFT_C_BEGIN

/// Rows are [token][kv_head][dim], packed. Every field must be set.
typedef struct deft_quantize_shape {
  size_t size; ///< sizeof(deft_quantize_shape)
  int64_t tokens;
  int32_t kv_heads;
  int32_t dim;     ///< head_dim
  deft_dtype from; ///< DEFT_F16 or DEFT_BF16
  deft_dtype to;   ///< DEFT_F8_E4M3 or DEFT_F8_E5M2
} deft_quantize_shape;

/// to = from / scale, divided in float32, to nearest even; too large values and infinities become the largest
/// number, and NaN stays NaN. `from` and `to` must not overlap. There is one scale for all KV heads
/// (scale_count is 1), one each, or one for each KV head of each token ([token][kv_head]), finite and above
/// 0.
DEFT_C_API deft_status deft_quantize(const deft_quantize_shape *shape, const void *from, const float *scales,
                                     size_t scale_count, void *to);

DEFT_C_END
