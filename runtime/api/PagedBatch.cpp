#include "runtime/api/Attention.h"
#include "runtime/api/Checks.h"
#include "runtime/api/Followers.h"
#include "runtime/api/GpuPlan.h"
#include "runtime/api/Ranks.h"
#include "runtime/api/Sized.h"
#include "runtime/plan/RoundedChunk.h"
#include "runtime/sharing/Batch.h"

#include <deft/c/paged_batch.h>

#include <algorithm>
#include <span>
#include <tuple>

using namespace deft;
using namespace deft::api;

struct deft_paged_batch {
  struct Options {
    int pageSize;
    bool checksEntries;
    int lastPage;
    int sharingStep;
    bool seesPath;
  };
  Options options;
  sharing::Batch batch;
  deft_tree view;           ///< of the tree of `batch`
  std::vector<int> numbers; ///< of ranks by page: a number for each page of each rank

  explicit deft_paged_batch(const Options &given) : options(given), batch(batchOf(1)) {
    view.look(batch.tree(), &batch.drafted(), &batch.requestInPieces(), options.sharingStep);
  }

  /// `times` as many tokens in a page and in a step of sharing.
  sharing::Batch batchOf(int times) const {
    const int step = options.sharingStep > 1 ? options.sharingStep * times : 1;
    return {sharing::PageSize(options.pageSize * times), options.checksEntries, options.lastPage, step,
            options.seesPath};
  }
  const tree::Ranks *ranks() const { return batch.tree().ranks(); }
  bool isByPage() const { return ranks() && ranks()->layout() == tree::RankLayout::ByPage; }
};

namespace {

#ifdef NDEBUG
constexpr bool kHasAssertions = false;
#else
constexpr bool kHasAssertions = true;
#endif

/// Two ranks may have pages of one id: in a batch over ranks each page of each rank has a number of its own.
Result<void> numberPages(deft_paged_batch &batch, const deft_page_table &table) {
  if (!batch.isByPage())
    return table.holders ? wrong("deft_page_table::holders", "is given, and the batch has no ranks by page",
                                 "set the batch's ranks first")
                         : Result<void>();
  if (!table.holders && table.entry_count > 0)
    return wrong("deft_page_table::holders", "is null, and the batch has ranks by page");
  const tree::Ranks &before = *batch.ranks();
  const int count = before.count();
  batch.numbers.resize(table.entry_count);
  for (std::size_t i = 0; i < table.entry_count; ++i) {
    const std::int64_t number = std::int64_t{table.entries[i]} * count + std::max(table.holders[i], 0);
    if (table.entries[i] >= 0 && table.holders[i] >= 0 && number > sharing::Batch::kLargestPage)
      return wrong("deft_page_table::entries", "has page " + std::to_string(table.entries[i]) + " at " +
                                                   std::to_string(i) + ", too many for " +
                                                   std::to_string(count) + " ranks");
    batch.numbers[i] = table.entries[i] < 0 || table.holders[i] < 0 ? -1 : static_cast<int>(number);
  }
  std::vector<int> holders(table.holders, table.holders + table.entry_count);
  if (holders == before.holders())
    return {};
  auto ranks = tree::Ranks::make(count, before.rank(), before.layout(), before.unit(), std::move(holders));
  if (!ranks)
    return wrong("deft_page_table::holders", "are wrong: " + ranks.error().message);
  batch.batch.setRanks(std::move(*ranks), count);
  return {};
}

Result<sharing::PageTable> tableOf(deft_paged_batch &batch, const deft_page_table *given) {
  const auto known = readSized("deft_page_table", given);
  if (!known)
    return known.error();
  if (auto numbered = numberPages(batch, *known); !numbered)
    return numbered.error();
  const int *const entries = batch.isByPage() ? batch.numbers.data() : known->entries;
  return sharing::PageTable{spanOf(entries, known->entry_count), known->row_stride, known->row_pages,
                            spanOf(known->indptr, known->indptr_count)};
}

Result<void> update(deft_paged_batch &batch, const deft_paged_requests *given) {
  const auto known = readSized("deft_paged_requests", given);
  if (!known)
    return known.error();
  if (known->count > 0 && !known->table)
    return wrong("deft_paged_requests::table", "is null");
  if (known->count > 0 && !known->lengths && !known->last_page_lengths)
    return wrong("deft_paged_requests::lengths", "is null, and the lengths of last pages are not given");
  const NotedChange noted(batch.view);
  const auto table = tableOf(batch, known->table);
  if (!table)
    return table.error();
  return batch.batch.update(
      {*table, spanOf(known->lengths, known->count), spanOf(known->last_page_lengths, known->count),
       spanOf(known->query_indptr, known->count + 1), spanOf(known->drafts, known->count),
       spanOf(known->rows, known->count), spanOf(known->ids, known->count)});
}

Result<void> grow(deft_paged_batch &batch, const deft_page_table *given, const int32_t *lengths,
                  size_t count) {
  if (auto checked = checkArray("lengths", lengths, count); !checked)
    return checked;
  const NotedChange noted(batch.view);
  const auto table = tableOf(batch, given);
  if (!table)
    return table.error();
  return batch.batch.grow(*table, spanOf(lengths, count));
}

/// Whether the attention means the same over the batch as over each request by itself.
Result<void> checkServes(const deft_paged_batch &batch, const spec::Variant &variant) {
  const int pageSize = variant.cache.pageSize;
  if (const int own = batch.options.pageSize; pageSize != own)
    return usage("the batch has pages of " + std::to_string(own) + " tokens, " + variant.called() + " " +
                     (pageSize == 0 ? "has none" : "of " + std::to_string(pageSize)),
                 "kv_cache = paged(page_size = " + std::to_string(own) + ") in the spec");
  if (plan::VariantFacts::reads(variant, spec::Builtin::Depth))
    return usage(variant.called() + " reads `depth`, which in a batch depends on the sharing of pages",
                 "make a tree, whose levels are yours");
  return {};
}

} // namespace

deft_status deft_paged_batch_make(const deft_paged_batch_options *options, deft_paged_batch **batch) {
  return make({{"options", options}}, batch, [&]() -> Result<std::unique_ptr<deft_paged_batch>> {
    const auto known = readSized("deft_paged_batch_options", options);
    if (!known)
      return known.error();
    constexpr std::int64_t kMostPages = std::int64_t{sharing::Batch::kLargestPage} + 1;
    const std::int64_t pages = known->cache_pages == 0               ? kMostPages
                               : known->cache_pages == DEFT_NO_PAGES ? 0
                                                                     : known->cache_pages;
    const std::tuple<const char *, std::int64_t, std::int64_t, std::int64_t, const char *> ranges[] = {
        {"page_size", known->page_size, 1, kLargestPage, "a cache without pages has no rows: make a tree"},
        {"cache_pages", pages, 0, kMostPages, ""},
        {"invariant_chunk", known->invariant_chunk, 0, tree::KvTree::kMaxTokens, ""},
        {"check_entries", known->check_entries, DEFT_CHECK_DEFAULT, DEFT_CHECK_NEVER, ""},
    };
    for (const auto &[name, value, least, most, hint] : ranges)
      if (auto checked =
              checkRange(std::string("deft_paged_batch_options::") + name, value, least, most, hint);
          !checked)
        return checked.error();
    const bool checksEntries = known->check_entries == DEFT_CHECK_DEFAULT
                                   ? kHasAssertions
                                   : known->check_entries == DEFT_CHECK_ALWAYS;
    return std::make_unique<deft_paged_batch>(deft_paged_batch::Options{
        known->page_size, checksEntries, static_cast<int>(pages - 1),
        std::max(plan::roundedChunk(known->invariant_chunk), 1), known->sees_path != 0});
  });
}

deft_status deft_paged_batch_set_ranks(deft_paged_batch *batch, const deft_ranks *ranks) {
  return call({{"batch", batch}, {"ranks", ranks}}, [&]() -> Result<void> {
    if (batch->batch.size() > 0)
      return usage("the batch has " + std::to_string(batch->batch.size()) + " requests",
                   "set its ranks before the first step");
    auto own = ranksOf(ranks);
    if (!own)
      return own.error();
    const int pageSize = batch->options.pageSize, chunk = batch->options.sharingStep;
    const std::string unit = "is " + std::to_string(own->unit()) + ", and ";
    if (own->layout() == tree::RankLayout::ByNode)
      return wrong("deft_ranks::layout", "is by node, but a batch finds its nodes itself",
                   "give the holder of each page");
    if (own->layout() == tree::RankLayout::ByPage) {
      if (own->unit() != pageSize)
        return wrong("deft_ranks::unit", unit + "the batch has pages of " + std::to_string(pageSize));
      if (!own->holders().empty())
        return wrong("deft_ranks::holders", "is given for a batch", "each step's page table has its holders");
      if (chunk > 1)
        return wrong("deft_ranks::layout", "is by page, and the batch has an invariant chunk",
                     "interleaved tokens keep whole chunks on each rank");
    } else if (pageSize % own->unit() != 0) {
      return wrong("deft_ranks::unit", unit + "does not divide pages of " + std::to_string(pageSize));
    } else if (chunk > 1 && chunk % own->unit() != 0) {
      return wrong("deft_ranks::unit", unit + "does not divide invariant chunks of " + std::to_string(chunk));
    }
    const NotedChange noted(batch->view);
    const bool isInterleaved = own->layout() == tree::RankLayout::Interleaved;
    const int count = own->count();
    batch->batch = batch->batchOf(isInterleaved ? count : 1);
    batch->batch.setRanks(std::move(*own), isInterleaved ? 1 : count);
    return {};
  });
}

void deft_paged_batch_destroy(deft_paged_batch *batch) { delete batch; }

deft_status deft_paged_batch_update(deft_paged_batch *batch, const deft_paged_requests *requests) {
  return call({{"batch", batch}, {"requests", requests}}, [&] { return update(*batch, requests); });
}

deft_status deft_paged_batch_grow(deft_paged_batch *batch, const deft_page_table *table,
                                  const int32_t *lengths, size_t count) {
  return call({{"batch", batch}, {"table", table}}, [&] { return grow(*batch, table, lengths, count); });
}

deft_status deft_paged_batch_update_plans(deft_paged_batch *batch, const deft_paged_requests *requests,
                                          deft_followers *followers) {
  return call({{"batch", batch}, {"requests", requests}, {"followers", followers}},
              [&] { return takeStep(batch->view, followers, [&] { return update(*batch, requests); }); });
}

deft_status deft_paged_batch_grow_plans(deft_paged_batch *batch, const deft_page_table *table,
                                        const int32_t *lengths, size_t count, deft_followers *followers) {
  return call({{"batch", batch}, {"table", table}, {"followers", followers}}, [&] {
    return takeStep(batch->view, followers, [&] { return grow(*batch, table, lengths, count); });
  });
}

deft_status deft_paged_batch_make_plan(const deft_paged_batch *batch, const deft_attention *attention,
                                       const deft_plan_options *options, deft_plan **plan) {
  return make({{"batch", batch}, {"attention", attention}}, plan,
              [&]() -> Result<std::unique_ptr<deft_plan>> {
                const auto serves = checkServes(*batch, attention->variant());
                return serves ? makePlan(*attention, batch->view, options) : serves.error();
              });
}

deft_status deft_paged_batch_make_gpu_plan(const deft_paged_batch *batch, const deft_gpu_attention *attention,
                                           const deft_gpu_plan_options *options, deft_gpu_plan **plan) {
  return make({{"batch", batch}, {"attention", attention}}, plan,
              [&]() -> Result<std::unique_ptr<deft_gpu_plan>> {
                const auto serves = checkServes(*batch, attention->variant());
                return serves ? makeGpuPlan(*attention, batch->view, options) : serves.error();
              });
}

const deft_tree *deft_paged_batch_get_tree(const deft_paged_batch *batch) {
  return ask<const deft_tree *>({"batch", batch}, nullptr, [&] { return &batch->view; });
}

deft_status deft_paged_batch_get_summary(const deft_paged_batch *batch, deft_sharing_summary *summary) {
  return call({{"batch", batch}, {"summary", summary}}, [&] {
    const sharing::Batch &own = batch->batch;
    deft_sharing_summary known{};
    known.requests = static_cast<std::int32_t>(own.size());
    for (const int member : own.members())
      known.request_tokens += own.forest().tokens(member);
    known.tokens = own.tree().tokens() - own.forest().standInTokens();
    return writeSized("deft_sharing_summary", known, summary);
  });
}
