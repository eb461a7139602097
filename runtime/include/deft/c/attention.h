#pragma once

#include <deft/c/status.h>
#include <deft/c/tensor.h>

/// The description of the computation: an attention, from a spec or a package.

DEFT_C_BEGIN

/// A compiled attention. Immutable; all threads may use it. Compiling takes some tenths of a second, so do it
/// once. Objects made with it stay valid without it.
typedef struct deft_attention deft_attention;

/// All zero is the default.
typedef struct deft_compile_options {
  size_t size;           ///< sizeof(deft_compile_options)
  const char *attention; ///< its name, if the spec defines several; null: the only one
  /// For a spec given as text: its name in errors (null: "spec"), and the folder of its imports; files
  /// outside of that folder are not read. Null: only the shipped library can be imported.
  const char *name;
  const char *import_folder;
  /// What errors and the log call the attention: "the layer's attention". Null: its name, in backquotes.
  const char *title;
} deft_compile_options;

/// Compiles a spec for this machine's processor. DEFT_DIAGNOSTICS if it is wrong; DEFT_ENVIRONMENT if the
/// library has no compiler (deft_has_compiler). `options` may be null. On an error `*attention` is null; this
/// holds for all calls that make a handle.
DEFT_C_API deft_status deft_attention_compile(const char *text, const deft_compile_options *options,
                                              deft_attention **attention);

/// Compiles the spec in a file, or a shipped spec by its name ("llama3_8b"). Imports are looked up next to
/// the file, then in the shipped library; `name` and `import_folder` are not used.
DEFT_C_API deft_status deft_attention_compile_file(const char *path, const deft_compile_options *options,
                                                   deft_attention **attention);

/// Loads a package of `deftc build`: for this machine's processor with `--cpu`, and for GPUs. A package holds
/// native code: trust it like a program. `name`: which of its attentions; null: the only one.
DEFT_C_API deft_status deft_attention_load_package(const char *path, const char *name,
                                                   deft_attention **attention);

DEFT_C_API void deft_attention_destroy(deft_attention *attention);

typedef struct deft_attention_facts {
  size_t size;      ///< sizeof(deft_attention_facts), set by the caller
  const char *name; ///< belongs to the attention
  int32_t query_heads;
  int32_t kv_heads;
  int32_t head_dim;        ///< k's
  int32_t page_size;       ///< tokens of a page; 0: the cache is contiguous
  deft_dtype dtype;        ///< of k
  deft_dtype output_dtype; ///< of out
  /// 1 if the spec says `with lse`: only then can a run give the log-sum-exp. Always 0 for sigmoid attention.
  int32_t has_lse;
  int32_t param_count;
  /// The strides of the spec's `kv_cache`, packed without gaps, in elements; page_stride is 0 if the cache is
  /// contiguous.
  int64_t page_stride;
  int64_t token_stride;
  int64_t head_stride;
  /// For each tensor. A spec may give k, v and out a dtype of their own. q has k's dim, and out has v's.
  int32_t key_dim;
  int32_t value_dim;
  deft_dtype query_dtype;
  deft_dtype key_dtype;
  deft_dtype value_dtype;
  int32_t value_in_key; ///< 1: a token's value is the beginning of its key, and a run's `v` is not read
  int32_t sees_path;    ///< 1: the mask is bound by `path`: a query may see later tokens of its path
  /// For a latent cache with scales in its rows: the columns of V that share a scale; 0: no scales. A token
  /// then has token_stride bytes: its key_dim columns and the scales.
  int32_t scale_columns;
  int32_t byte_products; ///< 1: q and the weights are rounded to e4m3, in which both products are made
} deft_attention_facts;

DEFT_C_API deft_status deft_attention_get_facts(const deft_attention *attention, deft_attention_facts *facts);

/// How many values an array has (deft_param_info::sized_by).
enum {
  DEFT_SIZED_BY_SPEC = 0,    ///< deft_param_info::length
  DEFT_SIZED_BY_TOKENS = 1,  ///< `[tokens]`, one for each slot of the cache: [page][slot in the page], or
                             ///< [token] of a contiguous one; `[tokens, kv_heads]`, one for each KV head of
                             ///< each slot, side by side (deft_param_info::elements)
  DEFT_SIZED_BY_QUERIES = 2, ///< `[queries]`, one for each query
};

/// A parameter that the spec declares.
typedef struct deft_param_info {
  size_t size;         ///< sizeof(deft_param_info), set by the caller
  const char *name;    ///< belongs to the attention
  deft_dtype dtype;    ///< DEFT_F32 or DEFT_I32
  int32_t length;      ///< 1; one value per query head or KV head; a table's size; 0: see sized_by
  int32_t is_array;    ///< 0 or 1
  int32_t has_default; ///< 0: a run must give a value
  int32_t sized_by;    ///< DEFT_SIZED_BY_...
  int32_t elements;    ///< of each slot or query, see sized_by: 1, or the number of KV heads
} deft_param_info;

/// `index` is from 0 to param_count - 1, in the order of the spec.
DEFT_C_API deft_status deft_attention_get_param(const deft_attention *attention, int32_t index,
                                                deft_param_info *info);

/// An attention as text to read: its source, and the compiler's output.
enum {
  DEFT_SOURCE_IR = 0,   ///< the deft dialect of MLIR, after the passes
  DEFT_SOURCE_CUDA = 1, ///< a kernel's translation unit as NVRTC gets it
  DEFT_SOURCE_SPEC = 2  ///< the compiled spec, as written; also of a package
};

/// For CUDA. All zero is the default.
typedef struct deft_source_options {
  size_t size;              ///< sizeof(deft_source_options)
  const char *architecture; ///< null: "sm_90a"
  const char *phase;        ///< of the untuned config, or "merge"; null: the first
} deft_source_options;

/// Free `*text` with deft_free. `options` may be null. The IR, and CUDA without a package, need a library
/// with the compiler: DEFT_ENVIRONMENT otherwise.
DEFT_C_API deft_status deft_attention_get_source(const deft_attention *attention, int32_t kind,
                                                 const deft_source_options *options, char **text);

/// Values of an attention's parameters. One thread may change them, or many may read them.
typedef struct deft_params deft_params;

/// Starts with the defaults.
DEFT_C_API deft_status deft_params_make(const deft_attention *attention, deft_params **params);
DEFT_C_API deft_status deft_params_copy(const deft_params *params, deft_params **copy);
DEFT_C_API void deft_params_destroy(deft_params *params);

/// Sets a scalar, or every head of an array. An i32 takes whole numbers only, an f32 finite ones.
DEFT_C_API deft_status deft_params_set(deft_params *params, const char *name, double value);
/// Sets an array; the values are copied. It has deft_param_info::length values. If that is 0, give as many as
/// the largest run reads: a run that finds too few is an error.
DEFT_C_API deft_status deft_params_set_f32(deft_params *params, const char *name, const float *values,
                                           size_t count);
DEFT_C_API deft_status deft_params_set_i32(deft_params *params, const char *name, const int32_t *values,
                                           size_t count);
/// Sets an array of f32 or i32, as declared, in the memory of the GPU that runs. Kernels read it when they
/// run, so it may change between the replays of a captured graph. It stays the caller's. Plans take no bound
/// from it; runs on the host and the tuner refuse it.
DEFT_C_API deft_status deft_params_set_device(deft_params *params, const char *name, const void *elements,
                                              size_t count);

DEFT_C_END
