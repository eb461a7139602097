#pragma once

#include <deft/c/status.h>

/// Tensors as callers have them: memory with a type, a shape and strides. The fields are those of DLPack's
/// DLTensor, so what numpy, torch and others hand over is written down field by field, and nothing is copied.

DEFT_C_BEGIN

/// DLPack's type code times 256, and the bits of an element: `code << 8 | bits`.
typedef int32_t deft_dtype;
enum {
  DEFT_I32 = 0x0020,
  DEFT_U32 = 0x0120,
  DEFT_F16 = 0x0210,
  DEFT_F32 = 0x0220,
  DEFT_BF16 = 0x0410,
  DEFT_F8_E4M3 = 0x0a08, ///< the finite kind: DLPack's float8_e4m3fn
  DEFT_F8_E5M2 = 0x0c08
};

/// Where memory lies, in DLPack's numbers. A run takes no other than its own; a tensor that does not say is
/// taken at its word.
enum {
  DEFT_DEVICE_UNSAID = 0,
  DEFT_DEVICE_CPU = 1,
  DEFT_DEVICE_CUDA = 2,
  DEFT_DEVICE_CUDA_HOST = 3,    ///< page-locked: the CPU's here
  DEFT_DEVICE_CUDA_MANAGED = 13 ///< serves both
};

/// It is read during the call only, but for a GPU's memory, which must stay until the run is done.
typedef struct deft_tensor {
  size_t size; ///< sizeof(deft_tensor)
  void *data;  ///< the first element: DLPack's `data` plus its `byte_offset`
  /// The first of k, v, page_table and a mask's bits may be -1: nobody says how many pages or entries there
  /// are, and what the plan needs is believed to be there.
  const int64_t *shape;
  const int64_t *strides; ///< in elements, not bytes; null: packed, the last dimension fastest
  deft_dtype dtype;
  int32_t ndim; ///< of shape and strides
  int32_t device_type;
  int32_t device_id; ///< of GPUs, as CUDA counts them
} deft_tensor;

struct deft_params;

/// What a run reads. `queries` are the plan's (deft_plan_query_count), in the tree's order; heads, head_dim,
/// types and page_size are the attention's (deft_attention_facts). A tensor of another type, shape, stride or
/// device is an error that names it, before anything is written.
typedef struct deft_inputs {
  size_t size; ///< sizeof(deft_inputs)
  /// [queries, query_heads, head_dim] (its key_dim, where K and V have dims of their own); a query's heads
  /// are packed, its row may be wider (q, K and V of a token side by side).
  const deft_tensor *q;
  /// The cache of one layer, as the spec's `kv_cache` orders it:
  ///   contiguous                [tokens, kv_heads, head_dim]
  ///   paged(..., order = nhd)   [pages, page_size, kv_heads, head_dim]
  ///   paged(..., order = hnd)   [pages, kv_heads, page_size, head_dim]
  ///   latent(dim, rope)         [pages, page_size, dim + rope], or with a dimension of 1 before the last;
  ///                             without the last `rope` columns where k_rope has them
  ///   latent(dim, rope, scales) [pages, page_size, bytes of a token], likewise: columns, scales and rotated
  ///                             columns side by side, of the cache's 8-bit dtype
  /// The last dimension is packed, the strides of the others are free: layers side by side, K and V in turn,
  /// or the heads of a token where the spec has its slots, by strides in the order of these dimensions.
  const deft_tensor *k;
  /// Of as many pages, or tokens, as k, with strides of its own. Not read where K holds V
  /// (deft_attention_facts::value_in_key): null will do.
  const deft_tensor *v;
  /// Of a paged cache: DEFT_I32, [entries], packed; the page of each page of the tree's locations. It covers
  /// at least every page that holds a token of a path; those that a mask hides from all queries may be -1. On
  /// the CPU a page that k does not have is an error. Null: the cache is contiguous.
  const deft_tensor *page_table;
  /// Null: the defaults. Not on a GPU, where the deft_gpu_attention has them.
  const struct deft_params *params;
  /// Not 0: behind the run q, the keys and values that it read, lse and out are looked at, and the first row
  /// with a NaN or an infinity is an error, which names it and what holds it; everything is written then. On
  /// a GPU the run waits for the stream, and is an error in a capture. For who looks for a fault.
  int32_t checks_finite;
  int32_t reserved; ///< 0
  /// The rotary columns of a latent cache, where they lie in a tensor of their own: [pages, page_size, rope],
  /// or with a dimension of 1 before the last, of as many pages as k, with strides of its own. k then has the
  /// others alone: [pages, page_size, dim]. Null: k has all of them. Processors read a token's columns from
  /// one tensor: there the two are parts of one, this one behind k.
  const deft_tensor *k_rope;
  /// Of sparse runs of an attention whose spec says `by = caller`: DEFT_I32, [queries, budget], packed, slots
  /// of the cache (page * page_size + the place in the page; of a contiguous one the token) in any order, and
  /// -1 for none anywhere. A run then needs no page_table. On the CPU a slot that the cache does not have is
  /// an error; a GPU sees that where deft_gpu_plan_options::checks_pages asks for it. Else null.
  const deft_tensor *lists;
} deft_inputs;

/// Where a run writes. Every element is written. What overlaps with an input, or with the other one, is an
/// error; heads of one row of which some are read and others written do not.
typedef struct deft_outputs {
  size_t size; ///< sizeof(deft_outputs)
  /// [queries, query_heads, head_dim] (its value_dim), of the output dtype, laid out as q may be
  const deft_tensor *out;
  /// DEFT_F32, [queries, query_heads], packed: natural logarithm of the sum of the exponentials of the
  /// scores; -inf (and 0 in out) where a query sees no token. Null: not wanted; must be where the attention
  /// has none.
  const deft_tensor *lse;
} deft_outputs;

DEFT_C_END
