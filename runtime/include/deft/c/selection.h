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
  DEFT_SELECT_BY_QUERY = 2, ///< all heads of the query
  DEFT_SELECT_BY_CALLER = 3 ///< all heads; no run selects, and sparse runs read deft_inputs::lists
};

/// The contents of a spec's `select`.
typedef struct deft_selection_info {
  size_t size;            ///< sizeof(deft_selection_info), set by the caller
  const int32_t *budgets; ///< tokens of a list, for the host to choose from; belongs to the attention
  size_t budget_count;    ///< 0: the spec does not select, and every layer attends to all visible tokens
  int32_t by;             ///< DEFT_SELECT_BY_...
  int32_t keep_first;     ///< tokens of the path that every list contains, from its beginning
  int32_t keep_last;      ///< and from its end
  int32_t reserved;       ///< 0
} deft_selection_info;

DEFT_C_API deft_status deft_attention_get_selection(const deft_attention *attention,
                                                    deft_selection_info *info);

/// For each list of each query, the positions of the tokens that a selecting run chose. Runs reuse its
/// memory. It serves all layers until the tree changes. For one thread at a time, but many sparse runs may
/// read it at once.
typedef struct deft_selection deft_selection;

/// Makes a selection with lists of at most `budget` tokens, one of the spec's budgets; 0: the first of them.
/// It is an error if the spec has no `select`.
DEFT_C_API deft_status deft_selection_make(const deft_attention *attention, int32_t budget,
                                           deft_selection **selection);
DEFT_C_API void deft_selection_destroy(deft_selection *selection);

/// The contents of a selection. They belong to the selection, until the next selecting run.
typedef struct deft_selection_view {
  size_t size; ///< sizeof(deft_selection_view), set by the caller
  const int32_t
      *positions; ///< [query][list][budget], counted from 0 at the root, rising; -1 behind a list's last
  const int32_t *counts; ///< [query][list]
  int32_t queries;       ///< of the last selecting run; 0 before the first
  int32_t lists;         ///< of a query: one, or one per KV head or query head
  int32_t budget;
  int32_t reserved; ///< 0
} deft_selection_view;

DEFT_C_API deft_status deft_selection_get(const deft_selection *selection, deft_selection_view *view);

/// Runs like deft_runtime_run, and fills the lists of the selection.
DEFT_C_API deft_status deft_runtime_run_selecting(const deft_runtime *runtime,
                                                  const deft_attention *attention, const deft_plan *plan,
                                                  deft_selection *selection, const deft_inputs *inputs,
                                                  const deft_outputs *outputs);
/// Computes the attention of all queries only to the tokens of their lists. The lists may come from another
/// layer. If the caller passes lists (deft_inputs::lists), `selection` is null.
DEFT_C_API deft_status deft_runtime_run_sparse(const deft_runtime *runtime, const deft_attention *attention,
                                               const deft_plan *plan, const deft_selection *selection,
                                               const deft_inputs *inputs, const deft_outputs *outputs);

/// Runs like deft_gpu_plan_run, with a plan that has a budget (deft_gpu_plan_options). The plan then holds
/// lists of the tokens of most worth, which other layers read with deft_gpu_plan_run_sparse. The host does
/// not need them, so both can be captured together with all other layers of a step.
DEFT_C_API deft_status deft_gpu_plan_run_selecting(deft_gpu_plan *plan, const deft_gpu_attention *attention,
                                                   const deft_inputs *inputs, const deft_outputs *outputs,
                                                   deft_gpu_stream stream);
/// Computes the attention of all queries only to the tokens of their lists. The lists may come from another
/// layer. It is an error if no run has selected since the last upload, or only one with another page table.
/// In a graph it reads the lists of the selecting run before it: capture one before the first sparse run. If
/// the caller passes lists (deft_inputs::lists), it reads their current values and needs no selecting run.
DEFT_C_API deft_status deft_gpu_plan_run_sparse(deft_gpu_plan *plan, const deft_gpu_attention *attention,
                                                const deft_inputs *inputs, const deft_outputs *outputs,
                                                deft_gpu_stream stream);
/// Copies the lists to the host, for inspection; waits for the stream. The selection must have the same
/// attention and budget. No deft_runtime can run over it.
DEFT_C_API deft_status deft_gpu_plan_read_lists(const deft_gpu_plan *plan, deft_selection *selection,
                                                deft_gpu_stream stream);

/// Consecutive tokens of a node. It never changes.
typedef struct deft_node_tokens {
  int32_t node;
  int32_t first; ///< of the node, from 0
  int32_t tokens;
} deft_node_tokens;

/// K and V from sparse attention differ from those of full attention: such tokens are polluted until you
/// compute them again. Branches share marks of shared tokens, and copies keep them. New tokens are not
/// polluted.
DEFT_C_API deft_status deft_sequence_tree_pollute(deft_sequence_tree *sequences,
                                                  const deft_node_tokens *tokens, size_t count);
/// Lists all polluted tokens, parents before children: in this order each can be computed from earlier ones.
/// Free `*tokens` with deft_free.
DEFT_C_API deft_status deft_sequence_tree_get_polluted(const deft_sequence_tree *sequences,
                                                       deft_node_tokens **tokens, size_t *count);
/// Marks tokens as computed again, with full attention, and written to their slots.
DEFT_C_API deft_status deft_sequence_tree_correct(deft_sequence_tree *sequences,
                                                  const deft_node_tokens *tokens, size_t count);

DEFT_C_END
