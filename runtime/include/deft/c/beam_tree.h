#pragma once

#include <deft/c/followers.h>
#include <deft/c/tree.h>

/// Wide beams: thousands of sequences over one history, which change their parents in each step.

DEFT_C_BEGIN

/// All zero but `page_size` is all default.
typedef struct deft_beam_tree_options {
  size_t size;        ///< sizeof(deft_beam_tree_options)
  int32_t page_size;  ///< deft_attention_facts::page_size, at least 1
  int32_t most_beams; ///< that a step may have; 0: as many as there are pages for
} deft_beam_tree_options;

/// What beams begin with, and where their tokens go. Read during the call only.
///
/// A history is what a search has in the cache already: stretches in the order of the path. Their locations
/// count tokens in a page table: token t is in slot t % page_size of page entries[t / page_size]. One prompt
/// whose pages are listed in `entries` is a single stretch, {0, tokens}. Histories of several searches share
/// nothing.
typedef struct deft_beam_histories {
  size_t size; ///< sizeof(deft_beam_histories)
  const deft_stretch *stretches;
  size_t stretch_count;
  /// History i has the stretches from indptr[i] to indptr[i + 1]. Null: all stretches are one history.
  const int32_t *indptr;
  size_t count; ///< of histories; where indptr is null: 0 or 1
  /// Page ids of the histories. Null: page p of the table is page p of the cache.
  const int32_t *entries;
  size_t entry_count;
  /// Pages for what the beams decode: of the cache, all different, none of a history. Null: the `page_count`
  /// pages of the cache that follow those of the histories, which is an error where `entries` are given.
  const int32_t *pages;
  size_t page_count;
} deft_beam_histories;

/// A step of the beams. The arrays belong to the beams, until their next change.
typedef struct deft_beam_step {
  size_t size; ///< sizeof(deft_beam_step), set by the caller
  size_t beams;
  /// Of each beam: where K and V of its new token go. Slot s is place s % page_size of page s / page_size of
  /// the cache. -1 before the first step.
  const int64_t *slots;
  /// Of each beam: the position of its last token, which is one less than the tokens of its path.
  const int32_t *positions;
  const int32_t *new_pages; ///< page ids: those that the step has begun to write
  size_t new_page_count;
  /// Page ids: those that beams saw tokens of before the step, and nobody does now. The step may have taken
  /// some pages that it made free for its own tokens; these are new pages instead.
  const int32_t *freed_pages;
  size_t freed_page_count;
} deft_beam_step;

/// The beams of a search, or of several. Each begins as one history. In each step every beam goes on from one
/// of the beams of the step before, whichever, and gains a token; a beam that nobody goes on from ends, and
/// pages without a token that a beam sees are free at once. Nothing is copied. The bytes are the host's:
/// it writes K and V of new tokens to the slots of the step.
///
/// A step takes time for what the beams have decoded, a fraction of a millisecond for thousands of them. A
/// plan of the beams' tree is made anew in each step, in about as long, if their attention hides no token
/// (no window) and they keep a GPU busy; else it is made as that of any tree.
///
/// A call that fails changes nothing, unless it says so. For one thread at a time; several may read at once.
typedef struct deft_beam_tree deft_beam_tree;

DEFT_C_API deft_status deft_beam_tree_make(const deft_beam_tree_options *options, deft_beam_tree **beams);
DEFT_C_API void deft_beam_tree_destroy(deft_beam_tree *beams);

/// Begins anew, with a beam for each history. A page table of the last search is no longer that of the beams.
DEFT_C_API deft_status deft_beam_tree_start(deft_beam_tree *beams, const deft_beam_histories *histories);

/// The next step, of `count` beams: beam i goes on from beam parents[i] of the step before (after
/// deft_beam_tree_start: from history parents[i]) and gains a token. DEFT_DIAGNOSTICS where there are too few
/// pages for that. `followers` may be null; else the plans follow, and where one cannot, the call fails, the
/// beams are those of the step all the same (deft_followers::is_taken), and that plan fits none.
DEFT_C_API deft_status deft_beam_tree_advance(deft_beam_tree *beams, const int32_t *parents, size_t count,
                                              deft_followers *followers);
DEFT_C_API deft_status deft_beam_tree_get_step(const deft_beam_tree *beams, deft_beam_step *step);

/// For plans and for looking: a node for each stretch of tokens that the same beams see, and query i is beam
/// i. It belongs to the beams, lives as long, and is changed through them alone. Plans of attentions whose
/// pages have another size are an error, and so are those that follow lengths. Make plans after the first
/// step: kernels are chosen for the tree as it is then.
DEFT_C_API const deft_tree *deft_beam_tree_get_tree(const deft_beam_tree *beams);

/// For deft_inputs::page_table: the entries of the histories, then those of the beams' pages. It belongs to
/// the beams, and stays the same until they begin anew or pages are added or taken.
DEFT_C_API deft_status deft_beam_tree_get_page_table(const deft_beam_tree *beams, const int32_t **entries,
                                                     size_t *count);

/* The beams have their pages for themselves. A host that shares the cache with others adds pages when beams
   need more, and takes those that are free. */

DEFT_C_API int64_t deft_beam_tree_free_pages(const deft_beam_tree *beams);
DEFT_C_API deft_status deft_beam_tree_add_pages(deft_beam_tree *beams, const int32_t *pages, size_t count);
/// Takes up to `most` free pages: from now on the beams do not write to them. On a GPU, runs from before may
/// still read them, on their stream. `*pages` is the caller's: deft_free.
DEFT_C_API deft_status deft_beam_tree_take_pages(deft_beam_tree *beams, size_t most, int32_t **pages,
                                                 size_t *count);

DEFT_C_END
