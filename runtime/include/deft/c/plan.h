#pragma once

#include <deft/c/attention.h>
#include <deft/c/tensor.h>
#include <deft/c/tree.h>

/// How the work of a step is divided among the threads.

DEFT_C_BEGIN

/// The strategy that groups the cache with the queries that read it. All of them give the same result up to
/// rounding.
enum {
  DEFT_PARTITION_DEFAULT = 0,    ///< that of the tuned config, else of the spec's schedule, else the cheapest
  DEFT_PARTITION_QUERY = 1,      ///< each query reads its whole path: nothing is shared
  DEFT_PARTITION_NODE = 2,       ///< each node is read once, by all queries that see it
  DEFT_PARTITION_NODE_CHUNK = 3, ///< each node is read once, a long one in chunks
  DEFT_PARTITION_FLATTEN = 4,    ///< the depth-first sequence of all tokens in even chunks
  DEFT_PARTITION_CASCADE = 5,    ///< level by level
  DEFT_PARTITION_GREEDY = 6,     ///< short nodes join their children's work if that is cheaper
  DEFT_PARTITION_UNION = 7,      ///< neighbouring queries over the union of their paths
  DEFT_PARTITION_AUTO = 8        ///< the cheapest by the cost model
};

enum {
  DEFT_CHUNK_DEFAULT = 0, ///< the tuned config's, else the spec's
  DEFT_CHUNK_FILL = -1    ///< the largest that keeps all workers busy
};

/// Tokens of a chunk of an invariant plan: enough that starting an item costs next to nothing.
enum { DEFT_INVARIANT_CHUNK = 512 };

/// Zero means the default.
typedef struct deft_plan_options {
  size_t size; ///< sizeof(deft_plan_options)
  /// Tokens that a mask hides from all queries are not planned and not read. If the mask's bounds depend on
  /// parameters, such as the width of a window, these are their values, and a run with other values is an
  /// error. Null: the defaults; a parameter without one bounds nothing. Read only during the call. Not used
  /// on a GPU, where the deft_gpu_attention has the values.
  const deft_params *params;
  int32_t partition;    ///< DEFT_PARTITION_...
  int32_t chunk_tokens; ///< most tokens of a piece of work, or DEFT_CHUNK_...
  /// The number of threads that will run the plan, at most 1,024; 0: a runtime's default. Not used on
  /// GPUs.
  int32_t workers;
  /// 1: the bits of a query's result do not change when other requests join or leave the tree (a branch that
  /// splits one of its nodes counts as a change, except in a batch with
  /// deft_paged_batch_options::invariant_chunk). Uses DEFT_PARTITION_NODE; any other partition is an error.
  /// Chunks have DEFT_INVARIANT_CHUNK tokens if neither `chunk_tokens` nor the spec sets a number.
  int32_t is_invariant;
  /// 1: making or advancing a plan fails if two nodes share slots of the cache. The error names both nodes.
  /// Costs a sort of the nodes a step.
  int32_t checks_places;
  int32_t reserved; ///< 0
} deft_plan_options;

/// Which drafts of a deft_paged_batch see which, in memory of the plan's device. Packed tensors.
typedef struct deft_draft_mask {
  size_t size; ///< sizeof(deft_draft_mask)
  /// DEFT_U32 or DEFT_I32, [requests, drafts, (drafts + 31) / 32], requests in the batch's order and at least
  /// as many drafts as any of them has: bit j % 32 of word j / 32 of row i says whether draft i sees draft j.
  /// A draft sees itself, its ancestors in a tree, and all of its request's tokens. Drafts may be in any
  /// order. Bits beyond a request's drafts are ignored.
  const deft_tensor *bits;
  /// DEFT_I32, [requests, drafts]: a draft's position after the request's tokens, from 0 to the number of
  /// drafts minus one, for the spec's masks. Null: the number of its ancestors.
  const deft_tensor *depths;
  /// DEFT_I32, [requests]: tokens before the drafts. They may be more than planned if the plan follows
  /// lengths (deft_gpu_plan_options::follows_lengths); the drafts then follow these. Null: as planned.
  const deft_tensor *lengths;
} deft_draft_mask;

/// The cost of a plan in a few numbers.
typedef struct deft_plan_summary {
  size_t size;            ///< sizeof(deft_plan_summary), set by the caller
  int64_t tokens_read;    ///< by all items, for each KV head: a shared token as often as it is read
  int32_t items;          ///< pieces of work, for each KV head
  int32_t direct_items;   ///< of these: write the output, no partial result
  int32_t dealt_items;    ///< of these: tokens that few rows see are dealt to these rows' warps
  int32_t partials;       ///< partial results written, for each query head
  int32_t merged_queries; ///< queries whose result is merged from several partials
  int32_t reserved;       ///< 0
} deft_plan_summary;

/// A plan's config, and why it was chosen. Made by the library: free it with deft_free. Fields beyond its
/// size do not exist.
typedef struct deft_config_choice {
  size_t size;
  const char *rule;       ///< "override", "exact", "sibling", "nearby" or "heuristic": see specs/CONFIGS.md
  const char *tree_class; ///< of the tree, as `deftc classify` explains it
  const char *file;       ///< its origin; empty: the heuristic
  const char *why;        ///< in words
} deft_config_choice;

/// What deft_plan_advance and similar calls did.
typedef int32_t deft_advanced;
enum {
  DEFT_ADVANCED_NOTHING = 0,  ///< the tree has not changed
  DEFT_ADVANCED_IN_PLACE = 1, ///< leaves grew, in a plan that can follow them; microseconds
  DEFT_ADVANCED_REMADE = 2    ///< anything else
};

/// The work list of one tree. Make it once a step and use it for every layer: it serves all attentions with
/// the same numbers of heads whose masks hide no less. For one thread at a time, but many runs may read it at
/// once.
///
/// Pages that a mask hides from all queries are never read: you may free them, and their entries of a page
/// table may be -1. (An invariant plan reads whole chunks, so less than a chunk before the visible tokens.)
typedef struct deft_plan deft_plan;

/// `options` may be null.
DEFT_C_API deft_status deft_plan_make(const deft_attention *attention, const deft_tree *tree,
                                      const deft_plan_options *options, deft_plan **plan);
DEFT_C_API void deft_plan_destroy(deft_plan *plan);

/// Updates the plan to the tree's current state, with the same options and memory. That is quick if only
/// leaves of the plan's own tree grew. After an error the plan fits no tree. `advanced` may be null.
DEFT_C_API deft_status deft_plan_advance(deft_plan *plan, const deft_tree *tree, deft_advanced *advanced);

/// For a batch with drafts: sets which drafts see which, before the runs of each step. If rows are not those
/// of a tree, this is an error, and the plan waits for another mask. Reads the mask only during the call.
DEFT_C_API deft_status deft_plan_draft(deft_plan *plan, const deft_draft_mask *mask);

/// 1 if the tree has not changed since the plan. A run with a stale plan is an error.
DEFT_C_API int32_t deft_plan_is_current(const deft_plan *plan);
DEFT_C_API int32_t deft_plan_query_count(const deft_plan *plan);
DEFT_C_API deft_status deft_plan_get_summary(const deft_plan *plan, deft_plan_summary *summary);
/// The plan's config, and the reason for it. If the tree moves to another class, deft_plan_advance may give
/// the plan another config: call this again to see it. Free `*choice` with deft_free.
DEFT_C_API deft_status deft_plan_get_choice(const deft_plan *plan, deft_config_choice **choice);

/// The plan as a picture (SVG) for people: the tree with a colour for each item, and the work of each worker.
/// `tree` is the one that the plan was made or advanced for, unchanged. Free `*svg` with deft_free.
DEFT_C_API deft_status deft_plan_get_picture(const deft_plan *plan, const deft_tree *tree, char **svg);

/// The plan as a page (HTML) for a browser, self-contained: the tree and its readers, items, workers over
/// time by the cost model, and the bytes of each node. `against`, made or advanced for `against_tree`,
/// appears next to it; both may be null. Free `*html` with deft_free.
DEFT_C_API deft_status deft_plan_get_page(const deft_plan *plan, const deft_tree *tree,
                                          const deft_plan *against, const deft_tree *against_tree,
                                          char **html);

DEFT_C_END
