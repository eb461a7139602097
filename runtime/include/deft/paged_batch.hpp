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
/// Drafts of speculative decoding: the host says how many, and the mask is where it was made.
///
///   batch.update({.table = table, .lengths = lengths, .drafts = drafts, .ids = requestIds}).value();
///   auto plan = batch.plan(gpuAttention, {.followsLengths = true}).value();
///   plan.upload(stream).value();
///   plan.draft({.bits = mask, .drafts = mostDrafts, .lengths = gpuLengths}, stream).value(); // each step
///   for (each layer) ... plan.run(...)
///
/// The engine's own table is the one that runs read, on the host or on a GPU; nothing of it is copied. So the
/// table that a run is given has the rows where they were in the last call. Tokens that several requests have
/// are read through the row of one of them. When it leaves, its row may be overwritten at once (on a GPU:
/// behind the runs of plans from before, on their stream); plans made or advanced after update() read these
/// tokens through another row.
namespace deft {

/// Which pages each row has, in the host's memory, in one of two forms. A call reads it and keeps nothing.
struct PageTable {
  /// Page ids. Two rows have a token in common where they have the same page at the same place, and had at
  /// all places before.
  std::span<const int> entries = {};

  // Rows at even distances (a block table, [row][rowStride]):
  std::int64_t rowStride = 0; ///< in entries; the last row may be shorter
  int rowPages = 0;           ///< most pages of a row; 0: as many as the stride

  // Or rows back to back (CSR). A row that gets a page moves those behind it, which takes a new plan, unless
  // there is room between them: a row need not fill its entries.
  std::span<const int> indptr = {}; ///< row r has the entries [indptr[r], indptr[r + 1])

  /// Of batches over ranks by page (ranks.hpp): the rank that holds each entry's page, or Ranks::kNoHolder.
  std::span<const int> holders = {};
};

/// The requests of a step, in the order in which their queries stand in q and out.
struct PagedRequests {
  PageTable table = {};
  std::span<const int> lengths = {}; ///< of each request, in tokens, including those of its queries
  /// In place of lengths where the table has an indptr: tokens in each request's last page.
  std::span<const int> lastPageLengths = {};

  /// Request i has the queries [queryIndptr[i], queryIndptr[i + 1]): those of its last tokens, each of which
  /// sees the request up to its own token. Empty: one each. A request without tokens may have one query,
  /// which sees nothing (0 in out, -inf in lse): for padding.
  std::span<const int> queryIndptr = {};

  /// Of each request: how many *drafts* follow its tokens, at most 256, whose tree the host need not know.
  /// They are the request's queries, all of them; which of them see which is a mask of bits, of a GPU's
  /// memory where the plan is (DraftMask, GpuPlan::draft, Plan::draft). `lengths` are then those of the
  /// requests without drafts, the drafts' K and V lie in the slots behind, in the order of their numbers, and
  /// the row has pages for them. A request that decodes one token has one draft, and one with none has no
  /// query. Not with queryIndptr. Empty: the batch has no drafts.
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
  /// Whether each call makes sure that pages which must not have changed have not, and an error says where
  /// they have. Costs a copy of the table, and reads all of it. None: in builds of the library with
  /// assertions.
  std::optional<bool> checkEntries = {};
  /// Pages of the cache: an entry outside them that a request reads is an error. None: only negative ones
  /// are. Entries after a request's last token are not read.
  std::optional<std::int64_t> cachePages = {};
  /// For plans with PlanOptions::invariant, which are an error without: tokens of their chunks, or a multiple
  /// (kInvariantChunk, where nothing says another number). Requests then share only whole chunks, counted
  /// from their beginnings, and each reads its remaining tokens itself. So a request's bits do not depend on
  /// the sharing of its pages, and a step reads up to a chunk more for each. 0: every shared token is read
  /// once.
  int invariantChunk = 0;
  /// For attentions whose mask is bound by `path` (Attention::seesPath()), which show a query tokens behind
  /// its own: steps that they do not serve are errors of update() and grow(), which change nothing, and not
  /// of the plan's, which comes when the batch has changed. These are steps with drafts, and those in which
  /// others share pages with some of a request's new tokens. Costs a copy of what the batch knows in each
  /// step in which a request has several queries.
  bool seesPath = false;
};

/// What sharing saves: a step reads `tokens` in place of `requestTokens`.
struct SharingSummary {
  int requests = 0;
  std::int64_t requestTokens = 0; ///< of all requests, without sharing
  std::int64_t tokens = 0;        ///< a token that several have counted once
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

/// Requests as C has them: arrays of one length, of which some are left out.
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
  /// An array has another length than the others.
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

/// The requests of a step, and how they become those of the next one. Takes time for what changed: for a
/// request that is new as many pages as it shares, for one that grew or left next to none. Work that is done
/// for each request of a step, whatever happens to it, is some nanoseconds.
///
/// A call that fails changes nothing, and its error says which request is wrong, by its number in the step.
/// (Where memory ends in the middle of a call, the batch is left without requests.)
///
/// For one thread at a time.
class PagedBatch {
public:
  static Result<PagedBatch> make(const PagedBatchOptions &options = {}) {
    deft_paged_batch_options own{};
    own.size = sizeof own;
    own.page_size = options.pageSize;
    if (options.cachePages) // in C, 0 says nothing
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

  /// Brings it to these requests: those that come, go, grow, become shorter or move to other rows are found.
  Result<void> update(const PagedRequests &requests) {
    const detail::RequestsOfC own(requests);
    const auto checked = own.check();
    return checked ? detail::done(deft_paged_batch_update(handle(), own.get())) : checked;
  }
  /// And lets plans follow. Where one cannot, the batch is that of the step all the same. Gives the most that
  /// any plan had to do.
  Result<Advanced> update(const PagedRequests &requests, const Followers &followers) {
    const detail::RequestsOfC own(requests);
    if (const auto checked = own.check(); !checked)
      return checked.error();
    detail::FollowersOfC of(followers);
    return of.after(deft_paged_batch_update_plans(handle(), own.get(), of.get()));
  }

  /// The quickest step: the requests of the last one in the same order, in the same rows, with as many
  /// queries, and none with fewer tokens than it had.
  Result<void> grow(const PageTable &table, std::span<const int> lengths) {
    const deft_page_table own = detail::tableOf(table);
    return detail::done(deft_paged_batch_grow(handle(), &own, lengths.data(), lengths.size()));
  }
  Result<Advanced> grow(const PageTable &table, std::span<const int> lengths, const Followers &followers) {
    const deft_page_table own = detail::tableOf(table);
    detail::FollowersOfC of(followers);
    return of.after(deft_paged_batch_grow_plans(handle(), &own, lengths.data(), lengths.size(), of.get()));
  }

  /// The plan of the step; one for each kind of attention that a model has. Afterwards it follows the batch,
  /// or `plan.advance(tree())` makes it that of the next step. An attention whose pages have another size is
  /// an error, and so is one that reads `depth`: that depends on who else shares a request's pages. Under a
  /// mask bound by `path` all new tokens of a request are on the path of each; it is an error where others
  /// share pages with some of them, and where there are drafts (Attention::seesPath tells it before).
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

  /// For plans to follow, and for looking; it lives as long as this object is not moved from. Its nodes are
  /// numbered as it comes. Where requests have drafts, leaves stand for these, by which plans are made.
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
