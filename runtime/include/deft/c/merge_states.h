#pragma once

#include <deft/c/gpu.h>
#include <deft/c/tensor.h>

/// Merges attention of the same queries over different tokens, computed by other kernels, on other devices or
/// in another order. The bits of a result depend only on the merged states and their order.

DEFT_C_BEGIN

enum { DEFT_MOST_STATES = 16 }; ///< in one call

/// An attention's results. Since it is an element of arrays, this struct never changes.
typedef struct deft_state {
  const deft_tensor *out; ///< [queries, query_heads, head_dim], packed: DEFT_F32, DEFT_F16 or DEFT_BF16
  /// DEFT_F32, [queries, query_heads], packed: natural logarithm of the sum of the exponentials of the
  /// scores. If it is -inf, the row saw no token, and `out` is not read.
  const deft_tensor *lse;
} deft_state;

/// Merges states in host memory. All `out` must have one shape and one type. `to` may be exactly one of the
/// states (both `out` and `lse`); any other overlap is an error. Its lse may be null. A row for which no
/// state saw a token becomes (0, -inf).
DEFT_C_API deft_status deft_merge_states(const deft_state *states, size_t count, const deft_state *to);

/// A merge of states in a GPU's memory, for one type of `out`. Immutable; all threads and streams may use it.
typedef struct deft_gpu_state_merge deft_gpu_state_merge;

/// NVRTC compiles the kernel, or it comes from the cache of kernels (DEFT_CACHE_DIR).
DEFT_C_API deft_status deft_gpu_state_merge_load(const deft_gpu *gpu, deft_dtype type,
                                                 deft_gpu_state_merge **merge);
DEFT_C_API void deft_gpu_state_merge_destroy(deft_gpu_state_merge *merge);
/// Puts the merge on the stream. Does not wait or allocate, and can be captured. Every `out` must begin at a
/// multiple of 16 bytes, and head_dim must fill a multiple of 16 bytes.
DEFT_C_API deft_status deft_gpu_state_merge_run(const deft_gpu_state_merge *merge, const deft_state *states,
                                                size_t count, const deft_state *to, deft_gpu_stream stream);

DEFT_C_END
