#pragma once

#include <deft/c/tensor.h>

/// Converts rows of 16-bit floats to rows of an 8-bit cache, in host memory.
///
/// An attention uses the values of these numbers as they are. Apply the scales in the spec. For K, let
/// `score` multiply `s` by a parameter. For V, use a parameter in `output` or, for scales of tokens, in
/// `value`.

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

/// Computes to = from / scale in float32, rounded to nearest even. Too large values and infinities become the
/// largest number; NaN stays NaN. `from` and `to` must not overlap. There is one scale for all KV heads
/// (scale_count is 1), one for each, or one for each KV head of each token ([token][kv_head]). Scales are
/// finite and above 0.
DEFT_C_API deft_status deft_quantize(const deft_quantize_shape *shape, const void *from, const float *scales,
                                     size_t scale_count, void *to);

DEFT_C_END
