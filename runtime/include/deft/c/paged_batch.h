#pragma once

#include <deft/c/followers.h>
#include <deft/c/tree.h>

/// For engines with their own page tables, a row of pages for each request. The batch finds shared pages in
/// them and reads each once.
///
/// Runs read the engine's own table, on the host or on a GPU, without a copy. So keep the rows where they
/// were in the last call. Shared tokens are read through the row of one request. When that request leaves,
/// you may overwrite its row at once (on a GPU: on the stream, after the runs of earlier plans); plans made
/// or advanced after an update read these tokens through another row.

DEFT_C_BEGIN

/// The pages of each row, in host memory, in one of two forms. Two rows share a token if they have
/// the same page at its place and at all places before it. A call reads the table and keeps
/// nothing.
typedef struct deft_page_table {
  size_t size;            ///< sizeof(deft_page_table)
  const int32_t *entries; ///< page ids
  size_t entry_count;
  /// Rows at even distances (a block table, [row][row_stride]): in entries; the last row may be shorter.
  int64_t row_stride;
  /// Or rows back to back (CSR): row r has the entries from indptr[r] to indptr[r + 1]. A row that gets a
  /// page moves later rows, which needs a new plan, unless there is room between them: a row need not fill
  /// its entries.
  const int32_t *indptr;
  size_t indptr_count; ///< one more than there are rows
  int32_t row_pages;   ///< most pages of a row at even distances; 0: as many as the stride
  int32_t reserved;    ///< 0
  /// The rank that holds each entry's page, or DEFT_NO_HOLDER; entry_count values. Only for batches over
  /// ranks by page (deft_paged_batch_set_ranks), otherwise null. Page ids are those of the holder's cache, so
  /// two ranks may use the same id.
  const int32_t *holders;
} deft_page_table;

/// The requests of a step, in the order of their queries in q and out. Arrays have `count` entries, unless a
/// comment says otherwise.
typedef struct deft_paged_requests {
  size_t size; ///< sizeof(deft_paged_requests)
  const deft_page_table *table;
  size_t count;
  const int32_t *lengths; ///< of each request, in tokens, including tokens with queries
  /// Instead of lengths, if the table has an indptr: tokens in each request's last page.
  const int32_t *last_page_lengths;
  /// count + 1 entries: request i has the queries from query_indptr[i] to query_indptr[i + 1], for its last
  /// tokens; each query sees the request up to its own token. Null: one each. A request without tokens may
  /// have one query, which sees nothing (0 in out, -inf in lse): for padding.
  const int32_t *query_indptr;
  const int32_t *rows; ///< the row of each request; null: request i has row i
  /// Identifies requests: any numbers, all different. A request with an id of the last step has the same
  /// pages, perhaps in another row, perhaps followed by more. If an entry changes, by a copy on write or a
  /// null page outside a window, give the request a new id. Null: each row is compared with a copy of its
  /// former entries, which takes the memory of the whole table and the time to read it at each update.
  const uint64_t *ids;
  /// How many *drafts* follow each request's tokens, at most 256, whose tree the host need not know. They are
  /// the request's only queries; a mask of bits, in the plan's memory, says which see which (deft_draft_mask,
  /// deft_gpu_plan_draft, deft_plan_draft). `lengths` then do not include drafts, whose K and V lie in the
  /// next slots, in the order of their numbers, and the row has pages for them. A request that decodes one
  /// token has one draft, and one with none has no query. Not with query_indptr. Null: the batch has no
  /// drafts.
  const int32_t *drafts;
} deft_paged_requests;

enum { DEFT_CHECK_DEFAULT = 0, DEFT_CHECK_ALWAYS = 1, DEFT_CHECK_NEVER = 2 };

enum { DEFT_NO_PAGES = -2147483647 - 1 }; ///< value for deft_paged_batch_options::cache_pages

typedef struct deft_paged_batch_options {
  size_t size;       ///< sizeof(deft_paged_batch_options)
  int32_t page_size; ///< deft_attention_facts::page_size, at least 1
  /// DEFT_CHECK_...: whether each call verifies that pages which must not have changed did not; an error
  /// names the place. This copies the whole table and reads it each time. By default on in builds of the
  /// library with assertions.
  int32_t check_entries;
  /// Pages of the cache: an entry outside them that a request reads is an error. 0: only negative ones are;
  /// DEFT_NO_PAGES: the cache has none. Entries after a request's last token are not read.
  int64_t cache_pages;
  /// For plans with deft_plan_options::is_invariant, which need it: tokens of their chunks, or a multiple
  /// (DEFT_INVARIANT_CHUNK by default). Requests then share only whole chunks, counted from their beginnings,
  /// and each reads its remaining tokens itself. So the bits of a request's result do not depend on the
  /// sharing of its pages, but a step reads up to a chunk more for each request. 0: every shared token is
  /// read once.
  int32_t invariant_chunk;
  /// 1: for attentions whose mask is bound by `path` (deft_attention_facts::sees_path), which shows later
  /// tokens. Unsupported steps are then errors of an update or a growth, which change nothing, not of the
  /// plan after the batch has changed. These are steps with drafts, and steps in which others share pages
  /// with some of a request's new tokens. Costs a copy of the batch's state in each step in which a request
  /// has several queries.
  int32_t sees_path;
} deft_paged_batch_options;

/// The gain by sharing: a step reads `tokens` tokens instead of `request_tokens`.
typedef struct deft_sharing_summary {
  size_t size;            ///< sizeof(deft_sharing_summary), set by the caller
  int64_t request_tokens; ///< of all requests, without sharing
  int64_t tokens;         ///< each shared token counts once
  int32_t requests;
  int32_t reserved; ///< 0
} deft_sharing_summary;

/// The requests of a step, followed from step to step. The time of a call depends on the changes. A failed
/// call changes nothing, and its error names the faulty request by its number in the step. (If memory runs
/// out within a call, the batch is left without requests.) For one thread at a time.
typedef struct deft_paged_batch deft_paged_batch;

DEFT_C_API deft_status deft_paged_batch_make(const deft_paged_batch_options *options,
                                             deft_paged_batch **batch);
DEFT_C_API void deft_paged_batch_destroy(deft_paged_batch *batch);

/// Updates the batch to these requests: it finds those that come, go, grow, shrink or change rows.
DEFT_C_API deft_status deft_paged_batch_update(deft_paged_batch *batch, const deft_paged_requests *requests);
/// Takes the fastest kind of step: the requests of the last step in the same order and rows, with the same
/// numbers of queries, and with at least as many tokens.
DEFT_C_API deft_status deft_paged_batch_grow(deft_paged_batch *batch, const deft_page_table *table,
                                             const int32_t *lengths, size_t count);

/// Works like deft_paged_batch_update and deft_paged_batch_grow, and also advances the plans. If a plan
/// cannot advance, the call fails but the batch does (deft_followers::is_taken), and that plan becomes
/// unusable.
DEFT_C_API deft_status deft_paged_batch_update_plans(deft_paged_batch *batch,
                                                     const deft_paged_requests *requests,
                                                     deft_followers *followers);
DEFT_C_API deft_status deft_paged_batch_grow_plans(deft_paged_batch *batch, const deft_page_table *table,
                                                   const int32_t *lengths, size_t count,
                                                   deft_followers *followers);

/// Makes the plan of the step; make one for each kind of attention in a model. deft_plan_advance with
/// deft_paged_batch_get_tree updates it to the next step. An attention with another page size is an error,
/// and so is one that reads `depth`, since that depends on the sharing of pages. `options` may be null.
DEFT_C_API deft_status deft_paged_batch_make_plan(const deft_paged_batch *batch,
                                                  const deft_attention *attention,
                                                  const deft_plan_options *options, deft_plan **plan);
/// Makes the plan of the step on a GPU. Call deft_gpu_plan_upload next, and deft_gpu_plan_advance for the
/// next step.
DEFT_C_API deft_status deft_paged_batch_make_gpu_plan(const deft_paged_batch *batch,
                                                      const deft_gpu_attention *attention,
                                                      const deft_gpu_plan_options *options,
                                                      deft_gpu_plan **plan);

/// The batch's tree, for plans and to read. It belongs to the batch and lives as long; only the batch changes
/// it, and node numbers have no meaning.
DEFT_C_API const deft_tree *deft_paged_batch_get_tree(const deft_paged_batch *batch);
DEFT_C_API deft_status deft_paged_batch_get_summary(const deft_paged_batch *batch,
                                                    deft_sharing_summary *summary);

DEFT_C_END
