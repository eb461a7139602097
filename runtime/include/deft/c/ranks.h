#pragma once

#include <deft/c/paged_batch.h>
#include <deft/c/sequence_tree.h>
#include <deft/c/tree.h>

/// One tree over the caches of several ranks (GPUs, processes): which rank holds which tokens. Every rank has
/// the same tree and the same layout. Its plans read only its own tokens, and its runs give the results over
/// these (out and lse; a row without tokens is 0 and -inf). <deft/c/peers.h> merges the results. Each rank
/// plans by itself; no plans are sent.

DEFT_C_BEGIN

enum { DEFT_MOST_RANKS = 64 };

typedef int32_t deft_rank_layout;
enum {
  /// A location counts the tokens of all caches together, `unit` tokens at a time: location x lies on rank
  /// (x / unit) mod count, there at x / (unit * count) * unit + x mod unit. So a page of the tree has
  /// page_size * count tokens, one page of page_size tokens on each rank, and all ranks have one page table.
  /// vLLM's cp_kv_cache_interleave_size is such a unit.
  DEFT_RANKS_INTERLEAVED = 0,
  /// The page at location x lies on rank holders[x / unit], there at x, where `unit` is the page size.
  DEFT_RANKS_BY_PAGE = 1,
  /// A node lies on rank holders[node], there at its location. A node that is cut keeps its number, and its
  /// first part has a new one: set the ranks again.
  DEFT_RANKS_BY_NODE = 2
};

enum { DEFT_NO_HOLDER = -1 }; ///< of pages and nodes without tokens

typedef struct deft_ranks {
  size_t size;             ///< sizeof(deft_ranks)
  int32_t count;           ///< of all ranks, 1 to DEFT_MOST_RANKS
  int32_t rank;            ///< this one, from 0
  deft_rank_layout layout; ///< DEFT_RANKS_...
  int32_t unit;            ///< tokens; ignored if nodes have holders
  const int32_t *holders;  ///< as the layout requires; null if it needs none
  size_t holder_count;
} deft_ranks;

/// Plans of the tree then read only this rank's tokens; null: all tokens. It stays over every change.
/// Positions and lengths are those of the whole tree. A leaf whose next tokens one rank holds grows in place
/// on all ranks. Plans of attentions with sinks, with an `output` hook or with `select` are errors.
DEFT_C_API deft_status deft_tree_set_ranks(deft_tree *tree, const deft_ranks *ranks);
/// The same for sequences. Their pool has pages of page_size * count tokens and must use
/// DEFT_RANKS_INTERLEAVED, and the slots of the pool are locations.
DEFT_C_API deft_status deft_sequence_tree_set_ranks(deft_sequence_tree *sequences, const deft_ranks *ranks);
/// For a batch, which must have no requests yet. DEFT_RANKS_INTERLEAVED: `unit` divides the page size, and a
/// page of the table has page_size * count tokens. DEFT_RANKS_BY_PAGE: deft_page_table::holders names the
/// rank that holds each page; `unit` is the page size, and `holders` is null here. Drafts lie where the
/// layout says, as other tokens do. All ranks pass the same numbers of drafts and the whole deft_draft_mask.
/// Each plan reads the drafts that its rank holds.
DEFT_C_API deft_status deft_paged_batch_set_ranks(deft_paged_batch *batch, const deft_ranks *ranks);

/// A layout by pages: proposes which rank holds the page at location p * page_size, for each p. Nodes of
/// several queries are split evenly, in whole pages; a query's own nodes lie on one rank. The same tree gives
/// the same layout. `*holders` is the caller's: deft_free.
DEFT_C_API deft_status deft_tree_propose_holders(const deft_tree *tree, int32_t count, int32_t page_size,
                                                 int32_t **holders, size_t *holder_count);

DEFT_C_END
