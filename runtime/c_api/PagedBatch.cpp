#include "runtime/c_api/Handles.h"
#include "runtime/c_api/PlanParts.h"
#include "runtime/c_api/Sized.h"

#include <deft/paged_batch.hpp>

#include <span>

using namespace deft::c;

struct deft_paged_batch {
  explicit deft_paged_batch(deft::PagedBatch of) : batch(std::move(of)), tree(&batch.tree()) {}

  deft::PagedBatch batch;
  deft_tree tree;
};

static_assert(DEFT_INVARIANT_CHUNK == deft::kInvariantChunk);

namespace {

/// An array of C; none where the pointer is null.
template <typename T> std::span<const T> spanOf(const T *values, std::size_t count) {
  return values ? std::span(values, count) : std::span<const T>();
}

deft::Result<deft::PageTable> tableOf(const deft_page_table *given) {
  const auto known = readSized("deft_page_table", given);
  if (!known)
    return known.error();
  return deft::PageTable{.entries = spanOf(known->entries, known->entry_count),
                         .rowStride = known->row_stride,
                         .rowPages = known->row_pages,
                         .indptr = spanOf(known->indptr, known->indptr_count)};
}

deft::Result<std::optional<bool>> checksOf(int32_t checkEntries) {
  switch (checkEntries) {
  case DEFT_CHECK_DEFAULT:
    return std::optional<bool>();
  case DEFT_CHECK_ALWAYS:
    return std::optional(true);
  case DEFT_CHECK_NEVER:
    return std::optional(false);
  default:
    return usage("deft_paged_batch_options::check_entries is " + std::to_string(checkEntries) +
                 ", not between 0 and 2");
  }
}

} // namespace

deft_status deft_paged_batch_make(const deft_paged_batch_options *options, deft_paged_batch **batch) {
  return make(__func__, {{"options", options}}, batch, [&]() -> deft::Result<deft::PagedBatch> {
    const auto known = readSized("deft_paged_batch_options", options);
    if (!known)
      return known.error();
    const auto checks = checksOf(known->check_entries);
    if (!checks)
      return checks.error();
    if (known->cache_pages < 0)
      return usage("deft_paged_batch_options::cache_pages is " + std::to_string(known->cache_pages) +
                   ", less than 0");
    deft::PagedBatchOptions made{.pageSize = known->page_size,
                                 .checkEntries = *checks,
                                 .invariantChunk = known->invariant_chunk,
                                 .seesPath = known->sees_path != 0};
    if (known->cache_pages > 0)
      made.cachePages = known->cache_pages;
    return deft::PagedBatch::make(made);
  });
}

void deft_paged_batch_destroy(deft_paged_batch *batch) { delete batch; }

deft_status deft_paged_batch_update(deft_paged_batch *batch, const deft_paged_requests *requests) {
  return call(__func__, {{"batch", batch}, {"requests", requests}}, [&]() -> deft::Result<void> {
    const auto known = readSized("deft_paged_requests", requests);
    if (!known)
      return known.error();
    if (known->count > 0 && !known->table)
      return usage("deft_paged_requests::table is null");
    if (known->count > 0 && !known->lengths && !known->last_page_lengths)
      return usage("deft_paged_requests::lengths is null, and so is last_page_lengths");
    const auto table = tableOf(known->table);
    if (!table)
      return table.error();
    return batch->batch.update({.table = *table,
                                .lengths = spanOf(known->lengths, known->count),
                                .lastPageLengths = spanOf(known->last_page_lengths, known->count),
                                .queryIndptr = spanOf(known->query_indptr, known->count + 1),
                                .drafts = spanOf(known->drafts, known->count),
                                .rows = spanOf(known->rows, known->count),
                                .ids = spanOf(known->ids, known->count)});
  });
}

deft_status deft_paged_batch_grow(deft_paged_batch *batch, const deft_page_table *table,
                                  const int32_t *lengths, size_t count) {
  return call(__func__, {{"batch", batch}, {"table", table}}, [&]() -> deft::Result<void> {
    if (!lengths && count > 0)
      return usage("deft_paged_batch_grow: lengths is null");
    const auto known = tableOf(table);
    if (!known)
      return known.error();
    return batch->batch.grow(*known, spanOf(lengths, count));
  });
}

deft_status deft_paged_batch_make_plan(const deft_paged_batch *batch, const deft_attention *attention,
                                       const deft_plan_options *options, deft_plan **plan) {
  return make(__func__, {{"batch", batch}, {"attention", attention}}, plan,
              [&]() -> deft::Result<deft::Plan> {
                const auto known = planOptionsOf(options);
                return known ? batch->batch.plan(attention->attention, *known) : known.error();
              });
}

deft_status deft_paged_batch_make_gpu_plan(const deft_paged_batch *batch, const deft_gpu_attention *attention,
                                           const deft_gpu_plan_options *options, deft_gpu_plan **plan) {
  return makeGpuPlan(__func__, {"batch", batch}, attention, options, plan,
                     [&](const auto &known) { return batch->batch.plan(attention->loaded, known); });
}

const deft_tree *deft_paged_batch_get_tree(const deft_paged_batch *batch) {
  return ask<const deft_tree *>(__func__, {"batch", batch}, nullptr, [&] { return &batch->tree; });
}

deft_status deft_paged_batch_get_summary(const deft_paged_batch *batch, deft_sharing_summary *summary) {
  return call(__func__, {{"batch", batch}, {"summary", summary}}, [&] {
    const deft::SharingSummary own = batch->batch.summary();
    deft_sharing_summary known{};
    known.request_tokens = own.requestTokens;
    known.tokens = own.tokens;
    known.requests = own.requests;
    return writeSized("deft_sharing_summary", known, summary);
  });
}
