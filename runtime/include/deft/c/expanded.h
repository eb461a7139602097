#pragma once

#include <deft/c/gpu.h>
#include <deft/c/plan.h>

/// A step over a latent cache in two runs. Nodes that many queries read are cheaper with the K and V of each
/// head (the *expanded* form) than as latents, so a host may keep both of some nodes. One plan then reads
/// these nodes expanded, and another plan reads all others as latents. The host multiplies the results of the
/// latents by W_UV, and deft_merge_states merges both.

DEFT_C_BEGIN

/// A node whose K and V exist in expanded form as well, in a cache of their own with its own page table. This
/// struct is an element of arrays, so it never changes.
typedef struct deft_expanded_node {
  int32_t node;
  int32_t tokens;   ///< as many as the node has
  int32_t location; ///< of the first token in the expanded cache, as deft_tree_place counts; the rest follow
} deft_expanded_node;

typedef int32_t deft_expanded_choice;
enum {
  DEFT_EXPANDED_BY_PRICE = 0, ///< nodes that are cheaper expanded, if they save more than a second run costs
  DEFT_EXPANDED_ALL = 1       ///< all given nodes
};

/// Divides a tree between two plans: `expanded` reads the chosen nodes in the expanded cache, `absorbed` all
/// others. `absorbed` is a plan of an attention over a latent cache; `expanded` is one of the same query
/// heads, as many KV heads, the same type of output, and the same scale and mask. Row i of both results is of
/// query i; a row that sees no token in one of them is 0 there, and its lse is -inf.
///
/// Call it in each step instead of deft_plan_advance: if only leaves grew since the last call with the same
/// nodes, the choice stays and both plans advance. After any other change of the tree, advancing one of the
/// plans alone is an error until you divide the tree again. A chosen node does not grow. Without nodes,
/// `absorbed` reads everything. After an error the plans may fit no tree.
///
/// Not for attentions with sinks, `output` hooks or `select`, for trees of beams or over ranks, and for
/// drafts whose trees come later. Invariant plans take DEFT_EXPANDED_ALL. Captures of steps
/// (deft_set_capture) leave out divided plans.
///
/// Returns the numbers of the chosen nodes, in the order of `nodes`. Free `*chosen` with deft_free. If there
/// are none, the run of `expanded` gives only 0 and -inf. You may leave it out, except in a graph that must
/// serve later steps.
DEFT_C_API deft_status deft_plan_divide(deft_plan *absorbed, deft_plan *expanded, const deft_tree *tree,
                                        const deft_expanded_node *nodes, size_t count,
                                        deft_expanded_choice choice, int32_t **chosen, size_t *chosen_count);
/// The same for plans on one GPU; upload both afterwards.
DEFT_C_API deft_status deft_gpu_plan_divide(deft_gpu_plan *absorbed, deft_gpu_plan *expanded,
                                            const deft_tree *tree, const deft_expanded_node *nodes,
                                            size_t count, deft_expanded_choice choice, int32_t **chosen,
                                            size_t *chosen_count);

DEFT_C_END
