#pragma once

#include <deft/c/paged_batch.h>
#include <deft/followers.hpp>

/// For engines with their own page tables, a row of pages for each request. The batch finds shared pages in
/// them and reads each once.
///
///   auto batch = deft::PagedBatch::make({.pageSize = 16}).value();
///   deft::PagedRequests step{.table = {.entries = blockTable, .rowStride = mostBlocks},
///                            .lengths = lengths,      // with the token of this step
///                            .ids = requestIds};
///   batch.update(step).value();
///   auto plan = batch.plan(attention).value();        // or of a GpuAttention, then plan.upload(stream)
///   for (each layer)
///     runtime.run(attention, plan, {.q = q, .k = k, .v = v, .pageTable = blockTable}, {.out = out}).value();
///
///   Plan *plans[] = {&plan};                          // of all kinds of layers
///   batch.grow(step.table, lengths, {.plans = plans}).value(); // the next step: each has one token more,
///                                                              // so the plan is lengthened in place
///   batch.update(step, {.plans = plans}).value();              // some came, some went
///
/// Drafts of speculative decoding: the host gives only their number; the mask stays where it was made.
///
///   batch.update({.table = table, .lengths = lengths, .drafts = drafts, .ids = requestIds}).value();
///   auto plan = batch.plan(gpuAttention, {.followsLengths = true}).value();
///   plan.upload(stream).value();
///   plan.draft({.bits = mask, .drafts = mostDrafts, .lengths = gpuLengths}, stream).value(); // each step
///   for (each layer) ... plan.run(...)
///
/// Runs read the engine's own table, on the host or on a GPU, without a copy. So keep the rows
/// where they were in the last call. Shared tokens are read through the row of one request. When
/// that request leaves, you may overwrite its row at once (on a GPU: on the stream, after the
/// runs of earlier plans); plans made or advanced after update() read these tokens through
/// another row.
namespace deft {

/// The pages of each row, in host memory, in one of two forms. A call reads the table and keeps nothing.
struct PageTable {
  /// Page ids. Two rows share a token if they have the same page at its place and at all places before
  /// it.
  std::span<const int> entries = {};

  // Rows at even distances (a block table, [row][rowStride]):
  std::int64_t rowStride = 0; ///< in entries; the last row may be shorter
  int rowPages = 0;           ///< most pages of a row; 0: as many as the stride

  // Or rows back to back (CSR). A row that gets a page moves later rows, which needs a new plan, unless there
  // is room between them: a row need not fill its entries.
  std::span<const int> indptr = {}; ///< row r has the entries [indptr[r], indptr[r + 1])

  /// For batches over ranks by page (ranks.hpp): the rank that holds each entry's page, or Ranks::kNoHolder.
  std::span<const int> holders = {};
};

/// The requests of a step, in the order of their queries in q and out.
struct PagedRequests {
  PageTable table = {};
  std::span<const int> lengths = {}; ///< of each request, in tokens, including tokens with queries
  /// Instead of lengths, if the table has an indptr: tokens in each request's last page.
  std::span<const int> lastPageLengths = {};

  /// Request i has the queries [queryIndptr[i], queryIndptr[i + 1]) for its last tokens; each query sees the
  /// request up to its own token. Empty: one each. A request without tokens may have one query, which sees
  /// nothing (0 in out, -inf in lse): for padding.
  std::span<const int> queryIndptr = {};

  /// How many *drafts* follow each request's tokens, at most 256, whose tree the host need not know. They
  /// are the request's only queries; a mask of bits, in the plan's memory, says which see which
  /// (DraftMask, GpuPlan::draft, Plan::draft). `lengths` then do not include drafts, whose K and V lie in
  /// the next slots, in the order of their numbers, and the row has pages for them. A request that decodes
  /// one token has one draft, and one with none has no query. Not with queryIndptr. Empty: the batch has
  /// no drafts.
  std::span<const int> drafts = {};

  /// The row of each request; empty: request i has row i.
  std::span<const int> rows = {};

  /// Identifies requests: any numbers, all different. A request with an id of the last step has the same
  /// pages, perhaps in another row, perhaps followed by more. If an entry changes, by a copy on write or a
  /// null page outside a window, give the request a new id.
  ///
  /// Empty: each row is compared with a copy of its former entries, which takes the memory of the whole table
  /// and the time to read it at each update.
  std::span<const std::uint64_t> ids = {};
};

struct PagedBatchOptions {
  int pageSize = 16; ///< Attention::pageSize(), at least 1
  /// Whether each call verifies that pages which must not have changed did not; an error names the place.
  /// This copies the whole table and reads it each time. None: on in builds of the library with
  /// assertions.
  std::optional<bool> checkEntries = {};
  /// Pages of the cache: an entry outside them that a request reads is an error. None: only negative ones
  /// are. Entries after a request's last token are not read.
  std::optional<std::int64_t> cachePages = {};
  /// For plans with PlanOptions::invariant, which need it: tokens of their chunks, or a multiple
  /// (kInvariantChunk by default). Requests then share only whole chunks, counted from their beginnings,
  /// and each reads its remaining tokens itself. So the bits of a request's result do not depend on the
  /// sharing of its pages, but a step reads up to a chunk more for each request. 0: every shared token is
  /// read once.
  int invariantChunk = 0;
  /// For attentions whose mask is bound by `path` (Attention::seesPath()), which shows later tokens.
  /// Unsupported steps are then errors of update() and grow(), which change nothing, not of the plan after
  /// the batch has changed. These are steps with drafts, and steps in which others share pages with some of a
  /// request's new tokens. Costs a copy of the batch's state in each step in which a request has several
  /// queries.
  bool seesPath = false;
};

/// The gain by sharing: a step reads `tokens` tokens instead of `requestTokens`.
struct SharingSummary {
  int requests = 0;
  std::int64_t requestTokens = 0; ///< of all requests, without sharing
  std::int64_t tokens = 0;        ///< each shared token counts once
};

namespace detail {

inline deft_page_table tableOf(const PageTable &table) {
  deft_page_table own{};
  own.size = sizeof own;
  own.entries = table.entries.data();
  own.entry_count = table.entries.size();
  own.row_stride = table.rowStride;
  own.row_pages = table.rowPages;
  own.indptr = table.indptr.empty() ? nullptr : table.indptr.data();
  own.indptr_count = table.indptr.size();
  own.holders = table.holders.size() == table.entries.size() ? table.holders.data() : nullptr;
  return own;
}

/// Requests in the form of C: arrays of one length, some of which may be absent.
class RequestsOfC {
public:
  explicit RequestsOfC(const PagedRequests &of) : table_(tableOf(of.table)) {
    own_.size = sizeof own_;
    own_.table = &table_;
    own_.count = of.lengths.empty() ? of.lastPageLengths.size() : of.lengths.size();
    fault_ = !take("lengths", of.lengths, own_.lengths) ||
             !take("lastPageLengths", of.lastPageLengths, own_.last_page_lengths) ||
             !take("drafts", of.drafts, own_.drafts) || !take("rows", of.rows, own_.rows) ||
             !take("ids", of.ids, own_.ids) || !take("queryIndptr", of.queryIndptr, own_.query_indptr, 1);
  }
  RequestsOfC(const RequestsOfC &) = delete;
  RequestsOfC &operator=(const RequestsOfC &) = delete;

  const deft_paged_requests *get() const { return &own_; }
  /// An error if an array has another length than the others.
  Result<void> check() const { return fault_ ? Result<void>(error_) : Result<void>(); }

private:
  template <typename T>
  bool take(const char *name, std::span<const T> values, const T *&to, std::size_t more = 0) {
    if (values.empty())
      return true;
    to = values.data();
    if (values.size() == own_.count + more)
      return true;
    const std::string field = std::string("PagedRequests::") + name;
    error_ = {ErrorCode::Usage,
              field + " has " + std::to_string(values.size()) + " entries, for " +
                  std::to_string(own_.count) + " requests it has " + std::to_string(own_.count + more),
              "", field};
    return false;
  }

  deft_page_table table_;
  deft_paged_requests own_ = {};
  bool fault_ = false;
  Error error_;
};

} // namespace detail

/// The requests of a step, followed from step to step. The time of a call depends on the changes. For a new
/// request it depends on the shared pages; for a request that grew or left it is small. Each request of a
/// step costs some nanoseconds in any case.
///
/// A failed call changes nothing, and its error names the faulty request by its number in the step. (If
/// memory runs out within a call, the batch is left without requests.)
///
/// For one thread at a time.
class PagedBatch {
public:
  static Result<PagedBatch> make(const PagedBatchOptions &options = {}) {
    deft_paged_batch_options own{};
    own.size = sizeof own;
    own.page_size = options.pageSize;
    if (options.cachePages) // in C, 0 means unknown
      own.cache_pages = *options.cachePages == 0 ? std::int64_t{DEFT_NO_PAGES} : *options.cachePages;
    own.check_entries = !options.checkEntries   ? DEFT_CHECK_DEFAULT
                        : *options.checkEntries ? DEFT_CHECK_ALWAYS
                                                : DEFT_CHECK_NEVER;
    own.invariant_chunk = options.invariantChunk;
    own.sees_path = options.seesPath;
    return detail::made<PagedBatch, deft_paged_batch>(
        [&](auto to) { return deft_paged_batch_make(&own, to); });
  }
  /// Takes a handle of <deft/deft.h>.
  explicit PagedBatch(deft_paged_batch *handle)
      : handle_(handle), view_(Tree::view(deft_paged_batch_get_tree(handle))) {}

  /// Updates the batch to these requests: it finds those that come, go, grow, shrink or change rows.
  Result<void> update(const PagedRequests &requests) {
    const detail::RequestsOfC own(requests);
    const auto checked = own.check();
    return checked ? detail::done(deft_paged_batch_update(handle(), own.get())) : checked;
  }
  /// Does the same and advances the plans. If a plan cannot advance, this is an error, but the batch does
  /// advance. Returns the largest change of any plan.
  Result<Advanced> update(const PagedRequests &requests, const Followers &followers) {
    const detail::RequestsOfC own(requests);
    if (const auto checked = own.check(); !checked)
      return checked.error();
    detail::FollowersOfC of(followers);
    return of.after(deft_paged_batch_update_plans(handle(), own.get(), of.get()));
  }

  /// Takes the fastest kind of step: the requests of the last step in the same order and rows, with the same
  /// numbers of queries, and with at least as many tokens.
  Result<void> grow(const PageTable &table, std::span<const int> lengths) {
    const deft_page_table own = detail::tableOf(table);
    return detail::done(deft_paged_batch_grow(handle(), &own, lengths.data(), lengths.size()));
  }
  Result<Advanced> grow(const PageTable &table, std::span<const int> lengths, const Followers &followers) {
    const deft_page_table own = detail::tableOf(table);
    detail::FollowersOfC of(followers);
    return of.after(deft_paged_batch_grow_plans(handle(), &own, lengths.data(), lengths.size(), of.get()));
  }

  /// Makes the plan of the step; make one for each kind of attention in a model. For the next step, pass it
  /// in Followers or call `plan.advance(tree())`. An attention with another page size is an error, and so is
  /// one that reads `depth`, since that depends on the sharing of pages. With a mask bound by `path`, drafts
  /// are an error, and so are other requests that share pages with a request's new tokens
  /// (PagedBatchOptions::seesPath reports this earlier).
  Result<Plan> plan(const Attention &attention, const PlanOptions &options = {}) const {
    const deft_plan_options own = detail::optionsOf(options);
    return detail::made<Plan, deft_plan>(
        [&](auto to) { return deft_paged_batch_make_plan(handle(), attention.handle(), &own, to); });
  }
  Result<GpuPlan> plan(const GpuAttention &attention, const GpuPlanOptions &options = {}) const {
    const detail::GpuOptionsOfC of(options);
    return detail::made<GpuPlan, deft_gpu_plan>(
        [&](auto to) { return deft_paged_batch_make_gpu_plan(handle(), attention.handle(), &of.own, to); });
  }

  /// The batch's tree, for plans and for inspection; valid until this object is moved from. Its node numbers
  /// have no meaning. For drafts it has leaves as placeholders, from which plans are made.
  const Tree &tree() const { return view_; }

  SharingSummary summary() const {
    const auto own = detail::factsOf<deft_sharing_summary>(
        [&](auto to) { return deft_paged_batch_get_summary(handle(), to); });
    return {own.requests, own.request_tokens, own.tokens};
  }

  const deft_paged_batch *handle() const { return handle_.get(); } ///< for <deft/deft.h>
  deft_paged_batch *handle() { return handle_.get(); }

private:
  detail::Owned<deft_paged_batch, deft_paged_batch_destroy> handle_;
  Tree view_;
};

} // namespace deft
