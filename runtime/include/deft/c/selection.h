#pragma once

#include <deft/c/gpu.h>
#include <deft/c/runtime.h>
#include <deft/c/sequence_tree.h>

/// Sparse layers, for attentions whose spec says `select`.

DEFT_C_BEGIN

/// Which rows of a query share a list (deft_selection_info::by).
enum {
  DEFT_SELECT_BY_KV_HEAD = 0, ///< the query heads of a KV head
  DEFT_SELECT_BY_QUERY_HEAD = 1,
  DEFT_SELECT_BY_QUERY = 2, ///< all of them
  DEFT_SELECT_BY_CALLER = 3 ///< likewise; no run selects, and sparse ones read deft_inputs::lists
};

/// What a spec's `select` says.
typedef struct deft_selection_info {
  size_t size;            ///< sizeof(deft_selection_info), set by the caller
  const int32_t *budgets; ///< tokens of a list: those that a host may choose from; belongs to the attention
  size_t budget_count;    ///< 0: the spec selects nothing, and every layer attends to all that it sees
  int32_t by;             ///< DEFT_SELECT_BY_...
  int32_t keep_first;     ///< tokens of the path that are in every list, from its beginning
  int32_t keep_last;      ///< and from its end
  int32_t reserved;       ///< 0
} deft_selection_info;

DEFT_C_API deft_status deft_attention_get_selection(const deft_attention *attention,
                                                    deft_selection_info *info);

/// For each list of each query, the positions of the tokens that a selecting run chose: room that runs fill
/// again and again. It serves all layers over the tree as it was then. For one thread at a time, but many
/// sparse runs may read it at once.
typedef struct deft_selection deft_selection;

/// For lists of `budget` tokens at most, which is one of the spec's; 0: the first of them. An error where the
/// spec has no `select`.
DEFT_C_API deft_status deft_selection_make(const deft_attention *attention, int32_t budget,
                                           deft_selection **selection);
DEFT_C_API void deft_selection_destroy(deft_selection *selection);

/// What is in a selection. It belongs to the selection, until the next run that selects.
typedef struct deft_selection_view {
  size_t size; ///< sizeof(deft_selection_view), set by the caller
  const int32_t
      *positions; ///< [query][list][budget], counted from 0 at the root, rising; -1 behind a list's last
  const int32_t *counts; ///< [query][list]
  int32_t queries;       ///< of the last run that selected; 0 before the first
  int32_t lists;         ///< of a query: one, or one a KV head or query head
  int32_t budget;
  int32_t reserved; ///< 0
} deft_selection_view;

DEFT_C_API deft_status deft_selection_get(const deft_selection *selection, deft_selection_view *view);

/// As deft_runtime_run; the selection then has the lists.
DEFT_C_API deft_status deft_runtime_run_selecting(const deft_runtime *runtime,
                                                  const deft_attention *attention, const deft_plan *plan,
                                                  deft_selection *selection, const deft_inputs *inputs,
                                                  const deft_outputs *outputs);
/// The attention of all queries to only the tokens of their lists, which may be another layer's. If the
/// caller passes lists (deft_inputs::lists), `selection` is null.
DEFT_C_API deft_status deft_runtime_run_sparse(const deft_runtime *runtime, const deft_attention *attention,
                                               const deft_plan *plan, const deft_selection *selection,
                                               const deft_inputs *inputs, const deft_outputs *outputs);

/// As deft_gpu_plan_run, by a plan with a budget (deft_gpu_plan_options); the plan then has lists of the
/// tokens that were worth most, which other layers read by deft_gpu_plan_run_sparse. The host does not see
/// them: both may be captured with all other layers of a step.
DEFT_C_API deft_status deft_gpu_plan_run_selecting(deft_gpu_plan *plan, const deft_gpu_attention *attention,
                                                   const deft_inputs *inputs, const deft_outputs *outputs,
                                                   deft_gpu_stream stream);
/// The attention of all queries to only the tokens of their lists, which may be another layer's. An error if
/// no run has selected since the last upload, or only one with another page table. In a graph it reads the
/// lists of the selecting run before it: capture one before the first sparse run. If the caller passes lists
/// (deft_inputs::lists), it reads their current values and needs no selecting run.
DEFT_C_API deft_status deft_gpu_plan_run_sparse(deft_gpu_plan *plan, const deft_gpu_attention *attention,
                                                const deft_inputs *inputs, const deft_outputs *outputs,
                                                deft_gpu_stream stream);
/// Copies the lists to the host, to be looked at; waits for the stream. The selection is of the same
/// attention and budget; no deft_runtime runs over it.
DEFT_C_API deft_status deft_gpu_plan_read_lists(const deft_gpu_plan *plan, deft_selection *selection,
                                                deft_gpu_stream stream);

/// Consecutive tokens of a node. It never changes.
typedef struct deft_node_tokens {
  int32_t node;
  int32_t first; ///< of the node, from 0
  int32_t tokens;
} deft_node_tokens;

/// K and V that follow from sparse attention differ from those of full attention: such tokens are polluted
/// until you compute them again. Branches share marks of shared tokens, and copies keep them. New tokens are
/// not polluted.
DEFT_C_API deft_status deft_sequence_tree_pollute(deft_sequence_tree *sequences,
                                                  const deft_node_tokens *tokens, size_t count);
/// All polluted tokens, parents before children: in this order each can be computed from earlier ones.
/// `*tokens` is the caller's: deft_free.
DEFT_C_API deft_status deft_sequence_tree_get_polluted(const deft_sequence_tree *sequences,
                                                       deft_node_tokens **tokens, size_t *count);
/// They were computed again, with full attention, and written to where they lay.
DEFT_C_API deft_status deft_sequence_tree_correct(deft_sequence_tree *sequences,
                                                  const deft_node_tokens *tokens, size_t count);

DEFT_C_END
