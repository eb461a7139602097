#pragma once

#include <deft/c/plan.h>
#include <deft/c/sequence_tree.h>
#include <deft/c/tensor.h>

/// On NVIDIA GPUs of compute capability 8.0 and newer. The driver is looked for at run time: programs that
/// are linked with the library start on machines without one.
///
/// Tensors of a run are memory of the GPU. Everything that a call puts on a stream happens behind what is
/// there and before what comes; deft_gpu_plan_run waits for nothing, allocates nothing and touches no other
/// stream, so it can be captured in a CUDA graph. A replay of the graph computes the plan that was uploaded
/// last. A capture fixes pointers, parameters and the room for plans (deft_gpu_plan_reserve). A step that
/// needs more room is an error when the plan advances, and the graph must be captured again with a new plan.

DEFT_C_BEGIN

/// A stream of the device: a CUstream, or cudaStream_t, which is the same. Null: the default stream.
typedef void *deft_gpu_stream;

typedef struct deft_gpu_facts {
  size_t size;              ///< sizeof(deft_gpu_facts), set by the caller
  const char *name;         ///< belongs to whom the facts were asked of
  const char *architecture; ///< of the kernels that it gets, "sm_90a"; empty: it is too old for any
  uint64_t memory_bytes;
  int32_t index; ///< as CUDA counts them
  int32_t capability_major;
  int32_t capability_minor;
  int32_t multiprocessors;
} deft_gpu_facts;

/// GPUs of this machine. Made by the library: deft_free gives all of it back. Fields that do not lie within
/// its size are not there.
typedef struct deft_gpus {
  size_t size;
  size_t count;
  const deft_gpu_facts *const *gpus;
} deft_gpus;

/// All that the driver shows; DEFT_ENVIRONMENT without a driver or a GPU. `*gpus` is the caller's: deft_free.
DEFT_C_API deft_status deft_gpu_list(deft_gpus **gpus);

/// A GPU and its primary context, the one that the CUDA runtime uses, too. All threads may use one. No call
/// of the library changes which device a thread has current.
typedef struct deft_gpu deft_gpu;

DEFT_C_API deft_status deft_gpu_open(int32_t index, deft_gpu **gpu);
/// What was made with it goes on without it.
DEFT_C_API void deft_gpu_destroy(deft_gpu *gpu);
DEFT_C_API deft_status deft_gpu_get_facts(const deft_gpu *gpu, deft_gpu_facts *facts);

/// All zero is all default. Read during the call.
typedef struct deft_gpu_load_options {
  size_t size; ///< sizeof(deft_gpu_load_options)
  /// A tree like those to come: the kernels are those that are tuned for its class; where nothing was tuned,
  /// of those that a package has (or of the default ones) the cheaper for it by the cost model. Null: the
  /// first.
  const deft_tree *typical_tree;
  /// Null: the defaults. What has no value yet gets one by deft_gpu_attention_with_params before a run.
  const deft_params *params;
  /// 1: for plans with deft_plan_options::is_invariant: one kernel, whose sums have the same order whoever
  /// shares them.
  int32_t is_invariant;
  int32_t reserved; ///< 0
} deft_gpu_load_options;

/// An attention's kernels on a GPU, with values of its parameters. Immutable; all threads and streams may use
/// one.
typedef struct deft_gpu_attention deft_gpu_attention;

/// Takes the kernels that the package has for the GPU; else they are compiled by NVRTC, or taken out of the
/// cache of kernels that were (DEFT_CACHE_DIR). Waits for the device. `options` may be null.
DEFT_C_API deft_status deft_gpu_attention_load(const deft_gpu *gpu, const deft_attention *attention,
                                               const deft_gpu_load_options *options,
                                               deft_gpu_attention **loaded);
/// These kernels with other values. Waits for the device where the attention has arrays.
DEFT_C_API deft_status deft_gpu_attention_with_params(const deft_gpu_attention *attention,
                                                      const deft_params *params, deft_gpu_attention **other);
/// What was made with it goes on without it; a graph that has captured runs with it does not.
DEFT_C_API void deft_gpu_attention_destroy(deft_gpu_attention *attention);
/// Both belong to the deft_gpu_attention.
DEFT_C_API const deft_attention *deft_gpu_attention_get_attention(const deft_gpu_attention *attention);
DEFT_C_API const deft_gpu *deft_gpu_attention_get_gpu(const deft_gpu_attention *attention);

/// The most that a plan may have: deft_gpu_room_for says what batches need. Memory for partial results:
/// partials * query_heads * (2 * head_dim + 4) bytes.
typedef struct deft_gpu_room {
  size_t size; ///< sizeof(deft_gpu_room), set by the caller
  int32_t queries;
  int32_t items; ///< deft_plan_summary::items; where the config has two kernels, for each of them
  /// Stretches of tokens that items read: about (items + nodes + queries), three times as many where pages
  /// are of 16 tokens, and five of 32 or more. Where the config's order is `mixed`, one more for each 16
  /// tokens of each item that few queries see. Without room for these, the plan is in the order of the tree.
  int32_t runs;
  int32_t partials; ///< deft_plan_summary::partials
  /// Of plans with deft_gpu_plan_options::budget: tokens of the longest path, and stretches of tokens that
  /// lie side by side, a node's as a rule, of all queries' paths.
  int32_t positions;
  int32_t stretches;
} deft_gpu_room;

/// All zero is all default.
typedef struct deft_gpu_plan_options {
  size_t size;                   ///< sizeof(deft_gpu_plan_options)
  const deft_plan_options *plan; ///< null: all default
  /// How many runs a replayed graph makes of a plan, one for each layer as a rule, where the host goes on to
  /// the next step's tree while they are under way. 0: it waits for them before it changes the tree, and any
  /// run that finds the tree changed is noticed as stale.
  int32_t runs_ahead;
  /// 1: requests grow on the GPU, where only the GPU knows how long they are: see deft_gpu_plan_follow. Makes
  /// a plan somewhat larger to copy.
  int32_t follows_lengths;
  /// Tokens that a request may gain there before the next plan, at most 64. 0: to the end of its page, but at
  /// least 16.
  int32_t slack;
  /// 1: for who suspects a page table that only the device has: before each run one kernel more looks at the
  /// pages that it will read, and deft_gpu_plan_check_replays says which entry names none that the cache has
  /// (the first dimension of k). It looks at deft_inputs::lists likewise. It cannot keep the run from reading
  /// there.
  int32_t checks_pages;
  /// For runs that select, and sparse ones (deft_gpu_plan_run_selecting), of an attention that selects:
  /// tokens of a list at most, one of the spec's. 0: there are no such runs. Takes 4 bytes for each query,
  /// list and token of the longest path, and 8 for each token of a list. Not together with follows_lengths,
  /// nor with drafts whose trees only the GPU knows.
  int32_t budget;
  /// For deft_gpu_room_for, with a budget or of invariant plans: tokens of a path at most. 0: with a budget,
  /// one may have all the tokens; of an invariant plan's paths nothing is known.
  int32_t longest_path;
} deft_gpu_plan_options;

/// Room, and the memory that a plan of it takes.
typedef struct deft_gpu_room_size {
  size_t size; ///< sizeof(deft_gpu_room_size), set by the caller
  uint64_t device_bytes;
  uint64_t host_bytes; ///< page-locked
} deft_gpu_room_size;

/// Room for the plans of all batches of at most so many requests with so many queries in all, whose prefixes
/// are shared in whatever way, and of so many tokens, a shared one counted once: for deft_gpu_plan_reserve,
/// before a graph is captured that is to serve them. A tree whose best plan needs more is planned in a way
/// for which this is enough; one whose paths have more than 32 nodes in the mean may not be, nor, where
/// longest_path does not say how long they are, an invariant plan of long paths that many queries share. (A
/// deft_tree has as many requests as it has leaves and nodes that queries end with.) The bytes are those of a
/// plan without drafts: the tables of deft_paged_requests::drafts come with the first that has some, for all
/// that there is room for. `options` and `room_size` may be null.
DEFT_C_API deft_status deft_gpu_room_for(const deft_gpu_attention *attention, int32_t requests,
                                         int32_t queries, int64_t tokens,
                                         const deft_gpu_plan_options *options, deft_gpu_room *room,
                                         deft_gpu_room_size *room_size);

/// The work list of one tree, made on the host and kept on the GPU. It is on one stream at a time: uploads,
/// runs and replays follow each other there. For one thread at a time; others, of the same tree and GPU too,
/// go on independently.
typedef struct deft_gpu_plan deft_gpu_plan;

/// Plans on the host; deft_gpu_plan_upload comes next. `options` may be null.
DEFT_C_API deft_status deft_gpu_plan_make(const deft_gpu_attention *attention, const deft_tree *tree,
                                          const deft_gpu_plan_options *options, deft_gpu_plan **plan);
DEFT_C_API void deft_gpu_plan_destroy(deft_gpu_plan *plan); ///< waits for the device

/// Makes the plan fit the tree as it is now, on the host alone: the GPU may still be running the one before.
/// An error where it exceeds the room that a graph has captured. `advanced` may be null.
DEFT_C_API deft_status deft_gpu_plan_advance(deft_gpu_plan *plan, const deft_tree *tree,
                                             deft_advanced *advanced);

/// Puts the plan on the stream, for runs and replays behind it: one copy, which is not waited for. Does
/// nothing where it is there already. Not on a stream that is being captured.
DEFT_C_API deft_status deft_gpu_plan_upload(deft_gpu_plan *plan, deft_gpu_stream stream);

/// For runs behind it on the stream, the path of each query has as many tokens as `lengths` says by then:
/// DEFT_I32, [queries], packed, in memory of the GPU. So a step in which all requests have grown needs
/// nothing of the host: one call before the step's layers, in the same captured graph, and each replay reads
/// what the lengths are then. Tokens that are gained have their pages behind the leaf's in the page table, as
/// in an engine's (deft_paged_batch); a deft_sequence_tree moves a leaf that outgrows its place there, which
/// takes a new plan. The lengths of the host's tree, which plans are made or advanced for, may be older, by
/// at most deft_gpu_plan_options::slack tokens, but not greater. Where a length is less than the plan's, or
/// greater than its slack allows, or a query cannot grow because another one ends with the same node, the
/// plan does not follow, and deft_gpu_plan_check_replays says so. What a window hides by then is read until
/// the next plan.
DEFT_C_API deft_status deft_gpu_plan_follow(deft_gpu_plan *plan, const deft_tensor *lengths,
                                            deft_gpu_stream stream);

/// For runs behind it on the stream, which drafts of a deft_paged_batch see which: the mask, in memory of the
/// GPU, as it is by then. Before the runs of each step, and as deft_gpu_plan_follow, it can be captured with
/// them: the host does not see the trees, and a replay reads what the mask and the lengths are then. Where
/// rows are not those of a tree, each of the request's drafts sees itself alone, and
/// deft_gpu_plan_check_replays says so, as it does of lengths. Lengths are those of requests, and what
/// deft_gpu_plan_follow says of older ones on the host is true of them.
DEFT_C_API deft_status deft_gpu_plan_draft(deft_gpu_plan *plan, const deft_draft_mask *mask,
                                           deft_gpu_stream stream);

/// Computes the attention of all queries. `attention` is the one of deft_gpu_plan_make, or another with the
/// same heads, tiles and head_dim, as of other layers, whose mask hides no less: where the plan's bounds ask
/// for parameters, with the same values. q, k, v and out begin at multiples of 16 bytes, and strides are
/// multiples of 16 elements, or of 8 where 16 does not divide head_dim. Errors are found before anything is
/// enqueued: a plan of an older tree, one that was not uploaded, tensors that are missing or wrong.
DEFT_C_API deft_status deft_gpu_plan_run(deft_gpu_plan *plan, const deft_gpu_attention *attention,
                                         const deft_inputs *inputs, const deft_outputs *outputs,
                                         deft_gpu_stream stream);

/// An error where a replayed graph has run while the tree had changed since the upload: its result is that of
/// the older tree. Or where deft_gpu_plan_follow or deft_gpu_plan_draft has met a length that the plan does
/// not serve, or rows of drafts that are no tree's, or any run a page that the cache does not have
/// (deft_gpu_plan_options::checks_pages). Told once. What is still under way is noticed later.
DEFT_C_API deft_status deft_gpu_plan_check_replays(deft_gpu_plan *plan);

/// Room for at least this, so that a graph captured now serves larger trees. Waits for the device; an upload
/// follows. An error once a graph has captured the room.
DEFT_C_API deft_status deft_gpu_plan_reserve(deft_gpu_plan *plan, const deft_gpu_room *room);
DEFT_C_API deft_status deft_gpu_plan_get_room(const deft_gpu_plan *plan, deft_gpu_room *room);

/// 1 where the tree has not changed since it was planned for.
DEFT_C_API int32_t deft_gpu_plan_is_current(const deft_gpu_plan *plan);
DEFT_C_API int32_t deft_gpu_plan_query_count(const deft_gpu_plan *plan);
DEFT_C_API deft_status deft_gpu_plan_get_summary(const deft_gpu_plan *plan, deft_plan_summary *summary);
/// Which config the plan has, and why. A tuned config is taken where it runs by the kernels that are loaded;
/// once a graph has captured the plan's room, the config stays, and `why` says so where a tree fits only cut
/// as the captured one was and read from the root. `*choice` is the caller's: deft_free.
DEFT_C_API deft_status deft_gpu_plan_get_choice(const deft_gpu_plan *plan, deft_config_choice **choice);

/// As deft_plan_get_picture.
DEFT_C_API deft_status deft_gpu_plan_get_picture(const deft_gpu_plan *plan, const deft_tree *tree,
                                                 char **svg);
/// As deft_plan_get_page.
DEFT_C_API deft_status deft_gpu_plan_get_page(const deft_gpu_plan *plan, const deft_tree *tree,
                                              const deft_gpu_plan *against, const deft_tree *against_tree,
                                              char **html);

/// A page table on a GPU, that of a deft_sequence_tree or of a host with pages of its own, at one address for
/// good, so that graphs may capture it. On one stream at a time, beside the plans there; for one thread at a
/// time.
typedef struct deft_gpu_page_table deft_gpu_page_table;

/// Room for a table of so many pages. Branches that share a page have an entry each, so it may need more than
/// the pool has pages. Costs 20 bytes a page.
DEFT_C_API deft_status deft_gpu_page_table_make(const deft_gpu *gpu, int32_t pages,
                                                deft_gpu_page_table **table);
DEFT_C_API void deft_gpu_page_table_destroy(deft_gpu_page_table *table); ///< waits for the device
/// Brings it to what the sequences have now, for runs and replays behind it; only what changed travels.
/// Always of the same sequences. Not on a stream that is being captured.
DEFT_C_API deft_status deft_gpu_page_table_upload(deft_gpu_page_table *table,
                                                  const deft_sequence_tree *sequences,
                                                  deft_gpu_stream stream);
/// For pages that the host gives out itself: brings the `count` entries from `first` on to these, for runs
/// and replays behind it; only those travel that are others than in the last upload. An entry that nobody has
/// uploaded says nothing. A table is of sequences or of these. Not on a stream that is being captured.
DEFT_C_API deft_status deft_gpu_page_table_upload_entries(deft_gpu_page_table *table, int32_t first,
                                                          const int32_t *entries, size_t count,
                                                          deft_gpu_stream stream);
/// Memory of the GPU that holds its entries, for a deft_inputs::page_table; it belongs to the table.
DEFT_C_API const int32_t *deft_gpu_page_table_data(const deft_gpu_page_table *table);

DEFT_C_END
