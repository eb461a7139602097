#pragma once

#include <deft/c/plan.h>
#include <deft/c/sequence_tree.h>
#include <deft/c/tensor.h>

/// Runs on NVIDIA GPUs of compute capability 8.0 and newer. The driver is loaded at run time: programs linked
/// with the library also start on machines without one.
///
/// Tensors of a run are memory of the GPU. Calls enqueue their work on the stream, in stream order.
/// deft_gpu_plan_run waits for nothing, allocates nothing and touches no other stream, so a CUDA graph can
/// capture it. A replay of the graph computes the plan that was uploaded last. A capture fixes pointers,
/// parameters and the room for plans (deft_gpu_plan_reserve). A step that needs more room is an error when
/// the plan advances, and the graph must be captured again with a new plan.

DEFT_C_BEGIN

/// A stream of the device: a CUstream, or cudaStream_t, which is the same. Null: the default stream.
typedef void *deft_gpu_stream;

typedef struct deft_gpu_facts {
  size_t size;              ///< sizeof(deft_gpu_facts), set by the caller
  const char *name;         ///< belongs to the object that returned the facts
  const char *architecture; ///< of its kernels, "sm_90a"; empty: the GPU is too old
  uint64_t memory_bytes;
  int32_t index; ///< CUDA's number
  int32_t capability_major;
  int32_t capability_minor;
  int32_t multiprocessors;
} deft_gpu_facts;

/// GPUs of this machine. Made by the library: free it with deft_free. Fields beyond its size do not exist.
typedef struct deft_gpus {
  size_t size;
  size_t count;
  const deft_gpu_facts *const *gpus;
} deft_gpus;

/// Lists all GPUs of the driver; DEFT_ENVIRONMENT without a driver or a GPU. Free `*gpus` with deft_free.
DEFT_C_API deft_status deft_gpu_list(deft_gpus **gpus);

/// A GPU and its primary context, which the CUDA runtime also uses. All threads may use it. No call of the
/// library changes a thread's current device.
typedef struct deft_gpu deft_gpu;

DEFT_C_API deft_status deft_gpu_open(int32_t index, deft_gpu **gpu);
/// Objects made with it stay valid without it.
DEFT_C_API void deft_gpu_destroy(deft_gpu *gpu);
DEFT_C_API deft_status deft_gpu_get_facts(const deft_gpu *gpu, deft_gpu_facts *facts);

/// All zero is the default. Read during the call.
typedef struct deft_gpu_load_options {
  size_t size; ///< sizeof(deft_gpu_load_options)
  /// A tree like those to come: loads the kernels that are tuned for its class. If nothing was tuned,
  /// loads the package's (or default) kernels that are cheapest for it by the cost model. Null: the
  /// first.
  const deft_tree *typical_tree;
  /// Null: the defaults. Set missing values by deft_gpu_attention_with_params before a run.
  const deft_params *params;
  /// 1: for plans with deft_plan_options::is_invariant: a single kernel, which always adds in the same
  /// order.
  int32_t is_invariant;
  int32_t reserved; ///< 0
} deft_gpu_load_options;

/// An attention's kernels on a GPU, with values of its parameters. Immutable: all threads and streams may use
/// it.
typedef struct deft_gpu_attention deft_gpu_attention;

/// Takes the package's kernels for the GPU. If it has none, NVRTC compiles them, or they come from the cache
/// of compiled kernels (DEFT_CACHE_DIR). Waits for the device. `options` may be null.
DEFT_C_API deft_status deft_gpu_attention_load(const deft_gpu *gpu, const deft_attention *attention,
                                               const deft_gpu_load_options *options,
                                               deft_gpu_attention **loaded);
/// Makes the same kernels with other values. Waits for the device if the attention has arrays.
DEFT_C_API deft_status deft_gpu_attention_with_params(const deft_gpu_attention *attention,
                                                      const deft_params *params, deft_gpu_attention **other);
/// Objects made with it stay valid; a graph that has captured runs with it does not.
DEFT_C_API void deft_gpu_attention_destroy(deft_gpu_attention *attention);
/// Both belong to the deft_gpu_attention.
DEFT_C_API const deft_attention *deft_gpu_attention_get_attention(const deft_gpu_attention *attention);
DEFT_C_API const deft_gpu *deft_gpu_attention_get_gpu(const deft_gpu_attention *attention);

/// The largest plan; deft_gpu_room_for computes it for batches. Partial results need partials * query_heads *
/// (2 * head_dim + 4) bytes.
typedef struct deft_gpu_room {
  size_t size; ///< sizeof(deft_gpu_room), set by the caller
  int32_t queries;
  int32_t items; ///< deft_plan_summary::items; for each kernel, if the config has two
  /// Stretches of tokens that items read: about (items + nodes + queries), three times as many with pages of
  /// 16 tokens, five times with 32 or more. In the order `mixed`, one more for each 16 tokens of each item
  /// that few queries see; without room for these, the plan has the order of the tree.
  int32_t runs;
  int32_t partials; ///< deft_plan_summary::partials
  /// For plans with deft_gpu_plan_options::budget: tokens of the longest path, and stretches of consecutive
  /// tokens (usually nodes) of all queries' paths.
  int32_t positions;
  int32_t stretches;
} deft_gpu_room;

/// All zero is the default.
typedef struct deft_gpu_plan_options {
  size_t size;                   ///< sizeof(deft_gpu_plan_options)
  const deft_plan_options *plan; ///< null: all default
  /// How many runs (usually layers) a replayed graph makes of a plan while the host already changes the tree
  /// for the next step. 0: the host waits for them before it changes the tree, and a run that finds a changed
  /// tree is reported as stale.
  int32_t runs_ahead;
  /// 1: requests grow on the GPU, and only the GPU knows their lengths: see deft_gpu_plan_follow. The plan to
  /// copy is then somewhat larger.
  int32_t follows_lengths;
  /// Tokens that a request may gain there before the next plan, at most 64. 0: to the end of its page, but at
  /// least 16.
  int32_t slack;
  /// 1: before each run one more kernel checks the pages that the run will read, and
  /// deft_gpu_plan_check_replays reports an entry outside the cache (the first dimension of k). It also
  /// checks deft_inputs::lists. It cannot stop the run from reading there.
  int32_t checks_pages;
  /// For selecting and sparse runs (deft_gpu_plan_run_selecting): the most tokens of a list, one of the
  /// spec's budgets. 0: no such runs. Takes 4 bytes for each query, list and token of the longest path, and 8
  /// for each token of a list. Not allowed with follows_lengths, or with drafts whose trees only the GPU
  /// knows.
  int32_t budget;
  /// For deft_gpu_room_for, with a budget or for invariant plans: the most tokens of a path. 0: unknown; with
  /// a budget, one path may have all tokens.
  int32_t longest_path;
  /// For lists by `caller`, with a budget: how many percent of a list are also in that of another query with
  /// the same path, as a guess. Queries that share nodes then read the union of their lists if that is
  /// estimated to be faster; results are the same within rounding. 0: each reads its own.
  int32_t list_overlap;
  int32_t reserved; ///< 0
} deft_gpu_plan_options;

/// A room, and the memory of a plan with that room.
typedef struct deft_gpu_room_size {
  size_t size; ///< sizeof(deft_gpu_room_size), set by the caller
  uint64_t device_bytes;
  uint64_t host_bytes; ///< page-locked
} deft_gpu_room_size;

/// Computes room for the plans of all batches with at most `requests` requests, `queries` queries in all and
/// `tokens` tokens (a shared one counted once), however they share. Pass it to deft_gpu_plan_reserve before
/// you capture a graph that serves them. A tree whose best plan needs more gets a plan that fits. Paths of
/// more than 32 nodes on average may not fit; without longest_path, an invariant plan of long shared paths
/// may not fit either. (The requests of a deft_tree are its leaves and the nodes at whose end queries are.)
/// The bytes do not include tables of drafts (deft_paged_requests::drafts), which the first plan with drafts
/// allocates. `options` and `room_size` may be null.
DEFT_C_API deft_status deft_gpu_room_for(const deft_gpu_attention *attention, int32_t requests,
                                         int32_t queries, int64_t tokens,
                                         const deft_gpu_plan_options *options, deft_gpu_room *room,
                                         deft_gpu_room_size *room_size);

/// The work list of one tree, made on the host and kept on the GPU. It is on one stream at a time: uploads,
/// runs and replays follow each other there. For one thread at a time; other plans, also of the same tree and
/// GPU, are independent.
typedef struct deft_gpu_plan deft_gpu_plan;

/// Makes a plan on the host. Call deft_gpu_plan_upload next. `options` may be null.
DEFT_C_API deft_status deft_gpu_plan_make(const deft_gpu_attention *attention, const deft_tree *tree,
                                          const deft_gpu_plan_options *options, deft_gpu_plan **plan);
DEFT_C_API void deft_gpu_plan_destroy(deft_gpu_plan *plan); ///< waits for the device

/// Updates the plan to the tree's current state, only on the host: the GPU may still be running the plan
/// before. It is an error if the plan exceeds the room of a captured graph. `advanced` may be null.
DEFT_C_API deft_status deft_gpu_plan_advance(deft_gpu_plan *plan, const deft_tree *tree,
                                             deft_advanced *advanced);

/// Enqueues one copy of the plan on the stream, for later runs and replays. Does nothing if the GPU already
/// has it. The stream must not be capturing.
DEFT_C_API deft_status deft_gpu_plan_upload(deft_gpu_plan *plan, deft_gpu_stream stream);

/// In later runs on the stream, the path of each query has as many tokens as `lengths` says at that time:
/// DEFT_I32, [queries], packed, in memory of the GPU. So a step in which all requests have grown needs
/// nothing from the host: capture one call before the step's layers, and each replay reads the current
/// lengths. The pages of new tokens follow the leaf's in the page table, as in an engine's
/// (deft_paged_batch); a deft_sequence_tree moves a leaf that outgrows its place, which needs a new plan. The
/// lengths of the host's tree may be older, by at most deft_gpu_plan_options::slack tokens, but not greater.
/// The plan does not follow, and deft_gpu_plan_check_replays reports it, if a length is less than the plan's,
/// or greater than its slack allows, or if another query ends with the same node. Tokens that a window hides
/// meanwhile are read until the next plan.
DEFT_C_API deft_status deft_gpu_plan_follow(deft_gpu_plan *plan, const deft_tensor *lengths,
                                            deft_gpu_stream stream);

/// Sets for later runs on the stream which drafts of a deft_paged_batch see which: the mask in memory of the
/// GPU, as it is at that time. Call it before the runs of each step. A graph can capture it with them: a
/// replay reads the current mask and lengths. If rows are no tree, each of the request's drafts sees only
/// itself and its request, and deft_gpu_plan_check_replays reports it. The lengths are those of requests;
/// deft_gpu_plan_follow says how far the host's may be older.
DEFT_C_API deft_status deft_gpu_plan_draft(deft_gpu_plan *plan, const deft_draft_mask *mask,
                                           deft_gpu_stream stream);

/// Computes the attention of all queries. `attention` is the one of deft_gpu_plan_make, or another layer's
/// with the same heads, tiles and head_dim whose mask hides no less, with the same values of the parameters
/// in the plan's bounds. q, k, v and out begin at multiples of 16 bytes, and strides are multiples of 16
/// elements, or of 8 where 16 does not divide head_dim. Errors are found before anything is enqueued: a plan
/// of an older tree, one that was not uploaded, tensors that are missing or wrong.
DEFT_C_API deft_status deft_gpu_plan_run(deft_gpu_plan *plan, const deft_gpu_attention *attention,
                                         const deft_inputs *inputs, const deft_outputs *outputs,
                                         deft_gpu_stream stream);

/// Returns an error if a replayed graph ran after the tree had changed since the upload (its result is the
/// older tree's), if deft_gpu_plan_follow or deft_gpu_plan_draft found a length outside the plan's limits or
/// rows that form no tree, or if a run found a page outside the cache (deft_gpu_plan_options::checks_pages).
/// Each error is reported once; the call does not wait for running work.
DEFT_C_API deft_status deft_gpu_plan_check_replays(deft_gpu_plan *plan);

/// Makes room for at least this, so that a graph captured now serves larger trees. Waits for the device;
/// upload the plan afterwards. It is an error if a graph has captured the room.
DEFT_C_API deft_status deft_gpu_plan_reserve(deft_gpu_plan *plan, const deft_gpu_room *room);
DEFT_C_API deft_status deft_gpu_plan_get_room(const deft_gpu_plan *plan, deft_gpu_room *room);

/// 1 if the tree has not changed since the plan.
DEFT_C_API int32_t deft_gpu_plan_is_current(const deft_gpu_plan *plan);
DEFT_C_API int32_t deft_gpu_plan_query_count(const deft_gpu_plan *plan);
DEFT_C_API deft_status deft_gpu_plan_get_summary(const deft_gpu_plan *plan, deft_plan_summary *summary);
/// The plan's config and the reason for it. A tuned config is used if the loaded kernels can run it. Once a
/// graph has captured the plan's room, the config stays; `why` says so if a tree fits only when it is cut
/// like the captured one and read from the root. Free `*choice` with deft_free.
DEFT_C_API deft_status deft_gpu_plan_get_choice(const deft_gpu_plan *plan, deft_config_choice **choice);

/// Works like deft_plan_get_picture.
DEFT_C_API deft_status deft_gpu_plan_get_picture(const deft_gpu_plan *plan, const deft_tree *tree,
                                                 char **svg);
/// Works like deft_plan_get_page.
DEFT_C_API deft_status deft_gpu_plan_get_page(const deft_gpu_plan *plan, const deft_tree *tree,
                                              const deft_gpu_plan *against, const deft_tree *against_tree,
                                              char **html);

/// A page table on a GPU, of a deft_sequence_tree or of your own pages, at a fixed address, so that graphs
/// may capture it. Use it on one stream at a time, and in one thread at a time.
typedef struct deft_gpu_page_table deft_gpu_page_table;

/// Makes room for `pages` entries. Branches that share a page have an entry each, so this may need to be more
/// than the pool has pages. Costs 20 bytes per page.
DEFT_C_API deft_status deft_gpu_page_table_make(const deft_gpu *gpu, int32_t pages,
                                                deft_gpu_page_table **table);
DEFT_C_API void deft_gpu_page_table_destroy(deft_gpu_page_table *table); ///< waits for the device
/// Updates it to the sequences' current state, for later runs and replays; only changes are copied. Always
/// use a table with the same sequences. The stream must not be capturing.
DEFT_C_API deft_status deft_gpu_page_table_upload(deft_gpu_page_table *table,
                                                  const deft_sequence_tree *sequences,
                                                  deft_gpu_stream stream);
/// For your own pages: sets the `count` entries from `first` on, for later runs and replays; only changed
/// entries are copied. An entry that was never uploaded is undefined. A table serves sequences or your own
/// pages, not both. The stream must not be capturing.
DEFT_C_API deft_status deft_gpu_page_table_upload_entries(deft_gpu_page_table *table, int32_t first,
                                                          const int32_t *entries, size_t count,
                                                          deft_gpu_stream stream);
/// The GPU's memory with its entries, for a deft_inputs::page_table. It belongs to the table.
DEFT_C_API const int32_t *deft_gpu_page_table_data(const deft_gpu_page_table *table);

DEFT_C_END
