#pragma once

#include <deft/c/tree.h>

/// For programs without a cache manager: a tree whose tokens lie in a pool of pages.

DEFT_C_BEGIN

typedef struct deft_pool_options {
  size_t size;       ///< sizeof(deft_pool_options)
  int64_t pages;     ///< room of K and V in pages; contiguous: tokens
  int32_t page_size; ///< deft_attention_facts::page_size; 0: one contiguous cache
  int32_t reserved;  ///< 0
} deft_pool_options;

/// Tokens to copy in K and in V of every layer, from slot to slot. Slot s is place s % page_size of physical
/// page s / page_size (contiguous: the token's index). It never changes.
typedef struct deft_token_copy {
  int64_t from;
  int64_t to;
  int64_t tokens;
} deft_token_copy;

/// A tree that assigns places in the cache. Branches share pages. A page is copied when a branch writes to a
/// shared one, and is free again when its last branch ends. You own the bytes: first make the copies that a
/// call returns, in their order, then write K and V of new tokens (deft_sequence_tree_slot gives the place).
///
/// Operations are those of deft_tree. A call that fails, for example for lack of pages, changes nothing. For
/// one thread at a time; several may read at once. The pointer for a returned number may be null.
typedef struct deft_sequence_tree deft_sequence_tree;

DEFT_C_API deft_status deft_sequence_tree_make(const deft_pool_options *options,
                                               deft_sequence_tree **sequences);
DEFT_C_API void deft_sequence_tree_destroy(deft_sequence_tree *sequences);

/// The sequences' tree, for plans and to read. It belongs to the sequences and lives as long; only they
/// change it.
DEFT_C_API const deft_tree *deft_sequence_tree_get_tree(const deft_sequence_tree *sequences);
/// The page table for deft_inputs::page_table, valid until the next change. It has no entries if the cache is
/// contiguous, and -1 for no page. It belongs to the sequences.
DEFT_C_API deft_status deft_sequence_tree_get_page_table(const deft_sequence_tree *sequences,
                                                         const int32_t **entries, size_t *count);
/// The slot of token `index` (from 0) of a node; -1 if there is no such token.
DEFT_C_API int64_t deft_sequence_tree_slot(const deft_sequence_tree *sequences, int32_t node, int32_t index);
DEFT_C_API int64_t deft_sequence_tree_free_pages(const deft_sequence_tree *sequences);

DEFT_C_API deft_status deft_sequence_tree_add_root(deft_sequence_tree *sequences, int32_t tokens,
                                                   int32_t *node);
DEFT_C_API deft_status deft_sequence_tree_add_child(deft_sequence_tree *sequences, int32_t parent,
                                                    int32_t tokens, int32_t *node);
/// Adds the guessed tokens of a step of speculative decoding below `sequence`: one node of one token for
/// each. parents[i] is an earlier token of the list, or DEFT_NO_NODE for the sequence itself. nodes[i]
/// becomes the node of token i; both have `count` entries.
DEFT_C_API deft_status deft_sequence_tree_add_token_tree(deft_sequence_tree *sequences, int32_t sequence,
                                                         const int32_t *parents, size_t count,
                                                         int32_t *nodes);
/// Free `*copies` with deft_free.
DEFT_C_API deft_status deft_sequence_tree_append(deft_sequence_tree *sequences, int32_t leaf, int32_t tokens,
                                                 deft_token_copy **copies, size_t *count);
DEFT_C_API deft_status deft_sequence_tree_fork(deft_sequence_tree *sequences, int32_t node, int32_t position,
                                               int32_t *branch);
DEFT_C_API deft_status deft_sequence_tree_prune(deft_sequence_tree *sequences, int32_t node);
/// The copies move the accepted tokens behind those of the sequence. Free `*copies` with deft_free.
DEFT_C_API deft_status deft_sequence_tree_accept(deft_sequence_tree *sequences, int32_t sequence,
                                                 int32_t last, deft_token_copy **copies, size_t *count);

DEFT_C_API deft_status deft_sequence_tree_add_query(deft_sequence_tree *sequences, int32_t node,
                                                    int32_t position, int32_t *query);
DEFT_C_API deft_status deft_sequence_tree_set_queries(deft_sequence_tree *sequences,
                                                      const deft_query *queries, size_t count);
DEFT_C_API deft_status deft_sequence_tree_clear_queries(deft_sequence_tree *sequences);

DEFT_C_END
