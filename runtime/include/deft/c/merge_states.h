#pragma once

#include <deft/c/gpu.h>
#include <deft/c/tensor.h>

/// Merges attention of the same queries over different tokens, computed by other kernels, on other devices or
/// in another order. The bits of a result depend only on the merged states and their order.

DEFT_C_BEGIN

enum { DEFT_MOST_STATES = 16 }; ///< of a call

/// An attention's results. This struct never changes, as it is an element of arrays.
typedef struct deft_state {
  const deft_tensor *out; ///< [queries, query_heads, head_dim], packed: DEFT_F32, DEFT_F16 or DEFT_BF16
  /// DEFT_F32, [queries, query_heads], packed: natural logarithm of the sum of the exponentials of the
  /// scores. Where it is -inf no token was seen, and `out` is not read.
  const deft_tensor *lse;
} deft_state;

/// Of the CPU's memory. All `out` have one shape and one type. `out` and `lse` of `to` may be those of a
/// state, all of them; any other overlap is an error. Its lse may be null: not wanted. A row that no state
/// has seen a token of is (0, -inf).
DEFT_C_API deft_status deft_merge_states(const deft_state *states, size_t count, const deft_state *to);

/// A merge of states in a GPU's memory, of one type of `out`. Immutable; all threads and streams may use one.
typedef struct deft_gpu_state_merge deft_gpu_state_merge;

/// The kernel is compiled by NVRTC, or taken out of the cache of kernels (DEFT_CACHE_DIR).
DEFT_C_API deft_status deft_gpu_state_merge_load(const deft_gpu *gpu, deft_dtype type,
                                                 deft_gpu_state_merge **merge);
DEFT_C_API void deft_gpu_state_merge_destroy(deft_gpu_state_merge *merge);
/// Puts the merge on the stream: waits for nothing, allocates nothing, can be captured. `out` of all begins
/// at a multiple of 16 bytes, and head_dim is a multiple of 16 bytes.
DEFT_C_API deft_status deft_gpu_state_merge_run(const deft_gpu_state_merge *merge, const deft_state *states,
                                                size_t count, const deft_state *to, deft_gpu_stream stream);

DEFT_C_END
