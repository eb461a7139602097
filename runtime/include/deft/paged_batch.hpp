#pragma once

#include <deft/attention.hpp>
#include <deft/gpu.hpp>
#include <deft/plan.hpp>
#include <deft/tree.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

/// For engines that have page tables of their own, a row of pages for each request: who shares what is found
/// in them, and every shared page is read once.
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
///   batch.grow(step.table, lengths).value();          // the next step: each has one token more,
///   plan.advance(batch.tree()).value();               // so the plan is lengthened in place
///
///   batch.update(step).value();                       // some came, some went
///   plan.advance(batch.tree()).value();
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
};

/// The requests of a step, in the order in which their queries stand in q and out.
struct PagedRequests {
  PageTable table = {};
  std::span<const int> lengths = {}; ///< of each request, in tokens, those whose queries are asked included
  /// In place of lengths where the table has an indptr: tokens in each request's last page.
  std::span<const int> lastPageLengths = {};

  /// Request i has the queries [queryIndptr[i], queryIndptr[i + 1]): those of its last tokens, each of which
  /// sees the request up to its own token. Empty: one each. A request without tokens may have one, which
  /// sees nothing (0 in out, -inf in lse): for rows of padding.
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

  /// Who each request is: any numbers, all different. One that the last step had, too, is the same request:
  /// it has the pages that it had, perhaps in another row, perhaps with more behind them. A request of which
  /// an entry changes, by a copy on write or by a null page where a window has left one, takes a new id.
  ///
  /// Empty: nothing is believed. Each row is compared with a copy of what it held, which takes the memory of
  /// the whole table and the time to read it at each update.
  std::span<const std::uint64_t> ids = {};
};

struct PagedBatchOptions {
  int pageSize = 16; ///< Attention::pageSize(), at least 1
  /// Whether each call makes sure that pages which must not have changed have not, and an error says where
  /// they have. Costs a copy of the table, and reads all of it. None: in builds of the library with
  /// assertions.
  std::optional<bool> checkEntries = {};
  /// Pages that the cache has: an entry that a request reads and that names none of them is an error, once it
  /// has come. None: only negative ones are. Entries behind a request's last token are not read, whatever
  /// they are.
  std::optional<std::int64_t> cachePages = {};
  /// For plans with PlanOptions::invariant, which are an error without: tokens of their chunks, or a multiple
  /// (kInvariantChunk, where nothing says another number). Requests then share whole chunks alone, counted
  /// from their beginnings, and each reads what it has behind them by itself: so a request's bits do not
  /// depend on who shares its pages, and a step reads up to a chunk more for each. 0: every token that is
  /// shared is read once.
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
  std::int64_t requestTokens = 0; ///< of all requests, each by itself
  std::int64_t tokens = 0;        ///< a token that several have counted once
};

/// The requests of a step, and how they become those of the next one. Takes time for what changed: for a
/// request that is new as many pages as it shares, for one that grew or left next to none. Work that is done
/// for each request of a step, whatever happens to it, is some nanoseconds.
///
/// A call that fails changes nothing, and its error says which request is wrong, by its number in the step.
/// (Where memory ends in the middle of a call, the batch is left without requests.)
///
/// For one thread at a time.
class DEFT_API PagedBatch {
public:
  static Result<PagedBatch> make(const PagedBatchOptions &options = {});

  PagedBatch(PagedBatch &&) noexcept;
  PagedBatch &operator=(PagedBatch &&) noexcept;
  ~PagedBatch();

  /// Brings it to these requests: those that come, go, grow, become shorter or move to other rows are found.
  Result<void> update(const PagedRequests &requests);

  /// The quickest step: the requests of the last one in the same order, in the same rows, with as many
  /// queries, and none with fewer tokens than it had.
  Result<void> grow(const PageTable &table, std::span<const int> lengths);

  /// The plan of the step; one for each kind of attention that a model has. Afterwards `plan.advance(tree())`
  /// makes it that of the next one. An attention whose pages have another size is an error, and so is one
  /// that reads `depth`: that depends on who else shares a request's pages. Under a mask bound by `path` all
  /// new tokens of a request are on the path of each; it is an error where others share pages with some of
  /// them, and where there are drafts (Attention::seesPath tells it before).
  Result<Plan> plan(const Attention &attention, const PlanOptions &options = {}) const;
  Result<GpuPlan> plan(const GpuAttention &attention, const GpuPlanOptions &options = {}) const;

  /// For plans to follow, and for looking; it lives as long as this object is not moved from. Its nodes are
  /// numbered as it comes. Where requests have drafts, leaves stand for these, by which plans are made.
  const Tree &tree() const;

  SharingSummary summary() const;

  struct Impl;

private:
  explicit PagedBatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

} // namespace deft
