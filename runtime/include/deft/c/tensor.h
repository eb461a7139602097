#pragma once

#include <deft/c/status.h>

/// Tensors as callers have them: memory with a type, a shape and strides. The fields are those of DLPack's
/// DLTensor, so you can copy the fields of arrays of numpy, torch and others, and no data is copied.

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

/// The device of memory, in DLPack's numbers. A run accepts only memory of its own device, and does not check
/// a tensor without a device.
enum {
  DEFT_DEVICE_UNSAID = 0,
  DEFT_DEVICE_CPU = 1,
  DEFT_DEVICE_CUDA = 2,
  DEFT_DEVICE_CUDA_HOST = 3,    ///< page-locked: the CPU's here
  DEFT_DEVICE_CUDA_MANAGED = 13 ///< serves both
};

/// It is read only during the call, except a GPU's memory, which must stay until the run is done.
typedef struct deft_tensor {
  size_t size; ///< sizeof(deft_tensor)
  void *data;  ///< the first element: DLPack's `data` plus its `byte_offset`
  /// The first dimension of k, v, page_table and a mask's bits may be -1: unknown; the run then assumes that
  /// it is large enough.
  const int64_t *shape;
  const int64_t *strides; ///< in elements, not bytes; null: packed, the last dimension fastest
  deft_dtype dtype;
  int32_t ndim; ///< of shape and strides
  int32_t device_type;
  int32_t device_id; ///< of GPUs, as CUDA counts them
} deft_tensor;

/// How a run is made. All zero is the default. Python's options of runs are made of this struct: those whose
/// description begins with "Not 0" are truth values, all others numbers.
typedef struct deft_run_settings {
  /// Not 0: a NaN or an infinity in q, in the keys and values that the run has read, in lse or in out is an
  /// error, which names the first query and head; outputs are still written. Without it a NaN in q or K may
  /// not show: the row may look like one that sees nothing. Such a run takes as long as several. On a GPU it
  /// waits for the stream, cannot be captured, and does not check tokens that requests gained only there, nor
  /// drafts.
  int32_t check_finite;
  int32_t reserved[3]; ///< 0
} deft_run_settings;

struct deft_params;

/// The inputs of a run. `queries` are the plan's (deft_plan_query_count), in the tree's order; heads,
/// head_dim, types and page_size are the attention's (deft_attention_facts). A tensor with another type,
/// shape, stride or device is an error that names it, before anything is written.
typedef struct deft_inputs {
  size_t size; ///< sizeof(deft_inputs)
  /// [queries, query_heads, head_dim] (key_dim, if K and V have different dims); a query's heads are packed,
  /// its row may be wider (as in a fused projection of q, K and V).
  const deft_tensor *q;
  /// The cache of one layer, in the order of the spec's `kv_cache`:
  ///   contiguous                [tokens, kv_heads, head_dim]
  ///   paged(..., order = nhd)   [pages, page_size, kv_heads, head_dim]
  ///   paged(..., order = hnd)   [pages, kv_heads, page_size, head_dim]
  ///   latent(dim, rope)         [pages, page_size, dim + rope], or with a dimension of 1 before the last;
  ///                             without the last `rope` columns where k_rope has them
  ///   latent(dim, rope, scales) [pages, page_size, bytes of a token], likewise: columns, scales and rotated
  ///                             columns side by side, of the cache's 8-bit dtype
  /// The last dimension is packed. The other strides are free, so layers may be neighbours, K and V may
  /// alternate, or heads and slots may be swapped: give the strides in the order of these dimensions. Entries
  /// of a dimension do not overlap, except by a stride of 0, which repeats one.
  const deft_tensor *k;
  /// With as many pages, or tokens, as k, and its own strides. Not read if K holds V
  /// (deft_attention_facts::value_in_key): may be null.
  const deft_tensor *v;
  /// For a paged cache: DEFT_I32, [entries], packed; the physical page of each page of the tree's locations.
  /// It must cover every page with a token of a path; pages that a mask hides from all queries may be -1. On
  /// the CPU a page outside k is an error. Null: the cache is contiguous.
  const deft_tensor *page_table;
  /// Null: the defaults. Not used on a GPU, where the deft_gpu_attention has the values.
  const struct deft_params *params;
  deft_run_settings settings;
  /// The rotary columns of a latent cache, if they are a separate tensor: [pages, page_size, rope], or with a
  /// dimension of 1 before the last, with as many pages as k and its own strides. k then has only the other
  /// columns: [pages, page_size, dim]. Null: k has all columns. On processors the two must be parts of one
  /// tensor, this one behind k.
  const deft_tensor *k_rope;
  /// For sparse runs of an attention whose spec says `by = caller`: DEFT_I32, [queries, budget], packed,
  /// slots of the cache (page * page_size + the place in the page; of a contiguous one the token) in any
  /// order, and -1 for none anywhere. A run then needs no page_table. On the CPU a slot outside the cache is
  /// an error; a GPU checks that with deft_gpu_plan_options::checks_pages. Otherwise null.
  const deft_tensor *lists;
} deft_inputs;

/// The outputs of a run. Every element is written. Overlap with an input or with each other is an error, but
/// different heads of one row do not overlap.
typedef struct deft_outputs {
  size_t size; ///< sizeof(deft_outputs)
  /// [queries, query_heads, head_dim] (its value_dim), of the output dtype, laid out as q may be
  const deft_tensor *out;
  /// DEFT_F32, [queries, query_heads], packed: natural logarithm of the sum of the exponentials of the
  /// scores; -inf (and 0 in out) for a query that sees no token. Null: not wanted; required to be null if the
  /// attention has no lse.
  const deft_tensor *lse;
} deft_outputs;

DEFT_C_END
