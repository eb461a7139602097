#pragma once

#include <deft/c/followers.h>
#include <deft/c/tree.h>

/// Wide beams: thousands of sequences over one history, which change their parents in each step.

DEFT_C_BEGIN

/// Fields other than `page_size` may be zero: the default.
typedef struct deft_beam_tree_options {
  size_t size;        ///< sizeof(deft_beam_tree_options)
  int32_t page_size;  ///< deft_attention_facts::page_size, at least 1
  int32_t most_beams; ///< limit for a step; 0: the number of pages
} deft_beam_tree_options;

/// The tokens that beams begin with, and the pages for their own. Read only during the call.
///
/// A history is the part of a search that is already in the cache: stretches in path order. Their locations
/// count tokens in a page table: token t is in slot t % page_size of page entries[t / page_size]. One prompt
/// whose pages are listed in `entries` is a single stretch, {0, tokens}. Histories of several searches share
/// nothing.
typedef struct deft_beam_histories {
  size_t size; ///< sizeof(deft_beam_histories)
  const deft_stretch *stretches;
  size_t stretch_count;
  /// History i has the stretches from indptr[i] to indptr[i + 1]. Null: all stretches are one history.
  const int32_t *indptr;
  size_t count; ///< histories; with indptr null: 0 or 1
  /// Page ids of the histories. Null: page p of the table is page p of the cache.
  const int32_t *entries;
  size_t entry_count;
  /// Pages of the cache for decoded tokens: all different, none in a history. Null: the `page_count` pages of
  /// the cache after those of the histories; an error if `entries` are given.
  const int32_t *pages;
  size_t page_count;
} deft_beam_histories;

/// A step of the beams. The arrays belong to the beams, until their next change.
typedef struct deft_beam_step {
  size_t size; ///< sizeof(deft_beam_step), set by the caller
  size_t beams;
  /// For each beam: the slot for K and V of its new token. Slot s is place s % page_size of page s /
  /// page_size of the cache. -1 before the first step.
  const int64_t *slots;
  /// For each beam: the position of its last token, which is one less than the length of its path.
  const int32_t *positions;
  const int32_t *new_pages; ///< page ids: pages that the step began to write
  size_t new_page_count;
  /// Page ids: pages with tokens that beams saw before the step and no beam sees now. If the step reused a
  /// freed page for its own tokens, it is a new page instead.
  const int32_t *freed_pages;
  size_t freed_page_count;
} deft_beam_step;

/// The beams of one search or of several. Each begins as one history. In each step every beam continues any
/// beam of the step before and gains a token. A beam that no beam continues ends, and pages without visible
/// tokens are free at once. Nothing is copied. The host owns the bytes: it writes K and V of new tokens to
/// the slots of the step.
///
/// The time of a step depends on the decoded tokens: a fraction of a millisecond for thousands of beams. Each
/// step makes a new plan of the beams' tree, in about the same time, if no mask hides tokens (no window) and
/// the beams keep a GPU busy; otherwise it plans as for any tree.
///
/// A call that fails changes nothing, unless it says so. For one thread at a time; several may read at once.
typedef struct deft_beam_tree deft_beam_tree;

DEFT_C_API deft_status deft_beam_tree_make(const deft_beam_tree_options *options, deft_beam_tree **beams);
DEFT_C_API void deft_beam_tree_destroy(deft_beam_tree *beams);

/// Starts again, with a beam for each history. Page tables of the last search are no longer valid.
DEFT_C_API deft_status deft_beam_tree_start(deft_beam_tree *beams, const deft_beam_histories *histories);

/// Takes the next step, with `count` beams: beam i continues beam parents[i] of the step before (after
/// deft_beam_tree_start: history parents[i]) and gains a token. DEFT_DIAGNOSTICS if there are too few pages.
/// `followers` may be null; otherwise these plans advance too. If a plan cannot, the call fails but the beams
/// do advance (deft_followers::is_taken), and that plan becomes unusable.
DEFT_C_API deft_status deft_beam_tree_advance(deft_beam_tree *beams, const int32_t *parents, size_t count,
                                              deft_followers *followers);
DEFT_C_API deft_status deft_beam_tree_get_step(const deft_beam_tree *beams, deft_beam_step *step);

/// The beams' tree, for plans and for inspection: a node for each stretch of tokens with the same readers;
/// query i is beam i. It belongs to the beams, lives as long, and only they change it. A plan that follows
/// lengths, or that is for an attention with another page size, is an error. Make plans after the first step,
/// since the choice of kernels depends on the tree at that time.
DEFT_C_API const deft_tree *deft_beam_tree_get_tree(const deft_beam_tree *beams);

/// The page table for deft_inputs::page_table: the entries of the histories, then those of the beams' pages.
/// It belongs to the beams and does not change until they start again or pages are added or taken.
DEFT_C_API deft_status deft_beam_tree_get_page_table(const deft_beam_tree *beams, const int32_t **entries,
                                                     size_t *count);

/* Only the beams use their pages. A host that shares the cache with other work adds pages when the beams need
   more, and takes free ones back. */

DEFT_C_API int64_t deft_beam_tree_free_pages(const deft_beam_tree *beams);
DEFT_C_API deft_status deft_beam_tree_add_pages(deft_beam_tree *beams, const int32_t *pages, size_t count);
/// Takes up to `most` free pages, to which the beams no longer write. On a GPU, earlier runs may still read
/// them on their stream. Free `*pages` with deft_free.
DEFT_C_API deft_status deft_beam_tree_take_pages(deft_beam_tree *beams, size_t most, int32_t **pages,
                                                 size_t *count);

DEFT_C_END
