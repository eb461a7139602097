#pragma once

#include <deft/c/followers.h>
#include <deft/c/tree.h>

/// For engines that have page tables of their own, a row of pages for each request: who shares what is found
/// in them, and every shared page is read once.
///
/// The engine's own table is the one that runs read, on the host or on a GPU; nothing of it is copied. So the
/// table that a run is given has the rows where they were in the last call. Tokens that several requests have
/// are read through the row of one of them. When it leaves, its row may be overwritten at once (on a GPU:
/// behind the runs of plans from before, on their stream); plans made or advanced after an update read these
/// tokens through another row.

DEFT_C_BEGIN

/// Which pages each row has, in the host's memory, in one of two forms. Two rows have a token in common where
/// they have the same page at the same place, and had at all places before. A call reads it and keeps
/// nothing.
typedef struct deft_page_table {
  size_t size;            ///< sizeof(deft_page_table)
  const int32_t *entries; ///< page ids
  size_t entry_count;
  /// Rows at even distances (a block table, [row][row_stride]): in entries; the last row may be shorter.
  int64_t row_stride;
  /// Or rows back to back (CSR): row r has the entries from indptr[r] to indptr[r + 1]. A row that gets a
  /// page moves those behind it, which takes a new plan, unless there is room between them: a row need not
  /// fill its entries.
  const int32_t *indptr;
  size_t indptr_count; ///< one more than there are rows
  int32_t row_pages;   ///< most pages of a row at even distances; 0: as many as the stride
  int32_t reserved;    ///< 0
  /// The rank that holds each entry's page, or DEFT_NO_HOLDER; entry_count values. Of batches over ranks by
  /// page (deft_paged_batch_set_ranks), else null. Page ids are those of the holder's cache: two ranks may
  /// have pages of one id.
  const int32_t *holders;
} deft_page_table;

/// The requests of a step, in the order in which their queries stand in q and out. Arrays have `count`
/// entries, where nothing else is said.
typedef struct deft_paged_requests {
  size_t size; ///< sizeof(deft_paged_requests)
  const deft_page_table *table;
  size_t count;
  const int32_t *lengths; ///< of each request, in tokens, those whose queries are asked included
  /// In place of lengths where the table has an indptr: tokens in each request's last page.
  const int32_t *last_page_lengths;
  /// count + 1 entries: request i has the queries from query_indptr[i] to query_indptr[i + 1], those of its
  /// last tokens, each of which sees the request up to its own token. Null: one each. A request without
  /// tokens may have one, which sees nothing (0 in out, -inf in lse): for rows of padding.
  const int32_t *query_indptr;
  const int32_t *rows; ///< the row of each request; null: request i has row i
  /// Who each request is: any numbers, all different. One that the last step had, too, is the same request:
  /// it has the pages that it had, perhaps in another row, perhaps with more behind them. A request of which
  /// an entry changes, by a copy on write or by a null page where a window has left one, takes a new id.
  /// Null: nothing is believed; each row is compared with a copy of what it held, which takes the memory of
  /// the whole table and the time to read it at each update.
  const uint64_t *ids;
  /// How many *drafts* follow each request's tokens, at most 256, whose tree the host need not know. They are
  /// the request's queries, all of them; which of them see which is a mask of bits, of a GPU's memory where
  /// the plan is (deft_draft_mask, deft_gpu_plan_draft, deft_plan_draft). `lengths` are then those of the
  /// requests without drafts, the drafts' K and V lie in the slots behind, in the order of their numbers, and
  /// the row has pages for them. A request that decodes one token has one draft, and one with none has no
  /// query. Not with query_indptr. Null: the batch has no drafts.
  const int32_t *drafts;
} deft_paged_requests;

enum { DEFT_CHECK_DEFAULT = 0, DEFT_CHECK_ALWAYS = 1, DEFT_CHECK_NEVER = 2 };

enum { DEFT_NO_PAGES = -2147483647 - 1 }; ///< of deft_paged_batch_options::cache_pages

typedef struct deft_paged_batch_options {
  size_t size;       ///< sizeof(deft_paged_batch_options)
  int32_t page_size; ///< deft_attention_facts::page_size, at least 1
  /// DEFT_CHECK_...: whether each call makes sure that pages which must not have changed have not, and an
  /// error says where they have. Costs a copy of the table, and reads all of it. By default in builds of the
  /// library with assertions.
  int32_t check_entries;
  /// Pages that the cache has: an entry that a request reads and that names none of them is an error, once it
  /// has come. 0: only negative ones are; DEFT_NO_PAGES: it has none. Entries behind a request's last token
  /// are not read, whatever they are.
  int64_t cache_pages;
  /// For plans with deft_plan_options::is_invariant, which are an error without: tokens of their chunks, or a
  /// multiple (DEFT_INVARIANT_CHUNK, where nothing says another number). Requests then share whole chunks
  /// alone, counted from their beginnings, and each reads what it has behind them by itself: so a request's
  /// bits do not depend on who shares its pages, and a step reads up to a chunk more for each. 0: every token
  /// that is shared is read once.
  int32_t invariant_chunk;
  /// 1: for attentions whose mask is bound by `path` (deft_attention_facts::sees_path), which show a query
  /// tokens behind its own. Steps that they do not serve are errors of an update or a growth then, which
  /// change nothing, and not of the plan's, which comes when the batch has changed. These are steps with
  /// drafts, and those in which others share pages with some of a request's new tokens. Costs a copy of what
  /// the batch knows in each step in which a request has several queries.
  int32_t sees_path;
} deft_paged_batch_options;

/// What sharing saves: a step reads `tokens` in place of `request_tokens`.
typedef struct deft_sharing_summary {
  size_t size;            ///< sizeof(deft_sharing_summary), set by the caller
  int64_t request_tokens; ///< of all requests, each by itself
  int64_t tokens;         ///< a token that several have counted once
  int32_t requests;
  int32_t reserved; ///< 0
} deft_sharing_summary;

/// The requests of a step, and how they become those of the next one. Takes time for what changed. A call
/// that fails changes nothing, and its error says which request is wrong, by its number in the step. (Where
/// memory ends in the middle of a call, the batch is left without requests.) For one thread at a time.
typedef struct deft_paged_batch deft_paged_batch;

DEFT_C_API deft_status deft_paged_batch_make(const deft_paged_batch_options *options,
                                             deft_paged_batch **batch);
DEFT_C_API void deft_paged_batch_destroy(deft_paged_batch *batch);

/// Brings it to these requests: those that come, go, grow, become shorter or move to other rows are found.
DEFT_C_API deft_status deft_paged_batch_update(deft_paged_batch *batch, const deft_paged_requests *requests);
/// The quickest step: the requests of the last one in the same order, in the same rows, with as many queries,
/// and none with fewer tokens than it had.
DEFT_C_API deft_status deft_paged_batch_grow(deft_paged_batch *batch, const deft_page_table *table,
                                             const int32_t *lengths, size_t count);

/// As deft_paged_batch_update and deft_paged_batch_grow, and the plans follow. Where a plan cannot, the call
/// fails, the batch is that of the step all the same (deft_followers::is_taken), and that plan fits none.
DEFT_C_API deft_status deft_paged_batch_update_plans(deft_paged_batch *batch,
                                                     const deft_paged_requests *requests,
                                                     deft_followers *followers);
DEFT_C_API deft_status deft_paged_batch_grow_plans(deft_paged_batch *batch, const deft_page_table *table,
                                                   const int32_t *lengths, size_t count,
                                                   deft_followers *followers);

/// The plan of the step; one for each kind of attention that a model has. Afterwards deft_plan_advance with
/// deft_paged_batch_get_tree makes it that of the next one. An attention whose pages have another size is an
/// error, and so is one that reads `depth`: that depends on who else shares a request's pages. `options` may
/// be null.
DEFT_C_API deft_status deft_paged_batch_make_plan(const deft_paged_batch *batch,
                                                  const deft_attention *attention,
                                                  const deft_plan_options *options, deft_plan **plan);
/// The plan of the step on a GPU; deft_gpu_plan_upload comes next, and deft_gpu_plan_advance for the next
/// step.
DEFT_C_API deft_status deft_paged_batch_make_gpu_plan(const deft_paged_batch *batch,
                                                      const deft_gpu_attention *attention,
                                                      const deft_gpu_plan_options *options,
                                                      deft_gpu_plan **plan);

/// For plans to follow, and for looking. It belongs to the batch, lives as long, and is changed through it
/// alone; its nodes are numbered as it comes.
DEFT_C_API const deft_tree *deft_paged_batch_get_tree(const deft_paged_batch *batch);
DEFT_C_API deft_status deft_paged_batch_get_summary(const deft_paged_batch *batch,
                                                    deft_sharing_summary *summary);

DEFT_C_END
