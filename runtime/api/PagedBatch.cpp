#include "runtime/api/AttentionImpl.h"
#include "runtime/api/CheckOptions.h"
#include "runtime/api/Convert.h"
#include "runtime/api/GpuImpl.h"
#include "runtime/api/TreeImpl.h"
#include "runtime/plan/RoundedChunk.h"
#include "runtime/sharing/Batch.h"

#include <deft/paged_batch.hpp>

#include <algorithm>

namespace deft {

struct PagedBatch::Impl {
  sharing::Batch batch;
  Tree view; ///< looks at the tree of `batch`

  Impl(int pageSize, bool checksEntries, int lastPage, int sharingStep, bool seesPath)
      : batch(sharing::PageSize(pageSize), checksEntries, lastPage, sharingStep, seesPath) {
    view.mutableImpl().look(batch.tree(), &batch.drafted(), &batch.requestInPieces(), sharingStep);
  }
};

namespace {

#ifdef NDEBUG
constexpr bool kHasAssertions = false;
#else
constexpr bool kHasAssertions = true;
#endif

/// As a spec's `page_size`.
constexpr int kLargestPage = 1 << 20;

/// A change of the batch, and of the stamp by which plans see it.
template <typename Change> Result<void> change(PagedBatch::Impl &impl, Change &&make) {
  auto result = api::guarded([&] { return api::toPublic(make(impl.batch)); });
  impl.view.mutableImpl().noteChange();
  return result;
}

sharing::PageTable toInternal(const PageTable &table) {
  return {table.entries, table.rowStride, table.rowPages, table.indptr};
}

bool readsDepth(const spec::Variant &variant) {
  return std::any_of(variant.exprs.begin(), variant.exprs.end(), [](const spec::Expr &expr) {
    return expr.op == spec::ExprOp::Builtin && expr.builtin == spec::Builtin::Depth;
  });
}

/// Whether the attention means the same over the batch as over each request by itself.
Result<void> checkServes(const sharing::Batch &batch, const Attention &attention) {
  if (const int own = batch.forest().pageSize().tokens(); attention.pageSize() != own)
    return api::usage(
        "the batch has pages of " + std::to_string(own) + " tokens, `" + attention.name() + "` " +
            (attention.pageSize() == 0 ? "has none" : "of " + std::to_string(attention.pageSize())),
        "kv_cache = paged(page_size = " + std::to_string(own) + ") in the spec");
  if (readsDepth(attention.impl().variant()))
    return api::usage("`" + attention.name() +
                          "` reads `depth`, which in a batch depends on who shares a request's pages",
                      "make a Tree whose levels mean something");
  return {};
}

} // namespace

PagedBatch::PagedBatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PagedBatch::PagedBatch(PagedBatch &&) noexcept = default;
PagedBatch &PagedBatch::operator=(PagedBatch &&) noexcept = default;
PagedBatch::~PagedBatch() = default;

Result<PagedBatch> PagedBatch::make(const PagedBatchOptions &options) {
  if (auto checked = api::checkRange("PagedBatchOptions::pageSize", options.pageSize, 1, kLargestPage,
                                     "a cache without pages has no rows: make a Tree");
      !checked)
    return checked.error();
  constexpr std::int64_t kMostPages = std::int64_t{sharing::Batch::kLargestPage} + 1;
  const std::int64_t pages = options.cachePages.value_or(kMostPages);
  if (auto checked = api::checkRange("PagedBatchOptions::cachePages", pages, 0, kMostPages); !checked)
    return checked.error();
  if (auto checked = api::checkRange("PagedBatchOptions::invariantChunk", options.invariantChunk, 0,
                                     tree::KvTree::kMaxTokens);
      !checked)
    return checked.error();
  return api::guarded([&]() -> Result<PagedBatch> {
    return PagedBatch(std::make_unique<Impl>(
        options.pageSize, options.checkEntries.value_or(kHasAssertions), static_cast<int>(pages - 1),
        std::max(plan::roundedChunk(options.invariantChunk), 1), options.seesPath));
  });
}

Result<void> PagedBatch::update(const PagedRequests &requests) {
  return change(*impl_, [&](sharing::Batch &batch) {
    return batch.update({toInternal(requests.table), requests.lengths, requests.lastPageLengths,
                         requests.queryIndptr, requests.drafts, requests.rows, requests.ids});
  });
}

Result<void> PagedBatch::grow(const PageTable &table, std::span<const int> lengths) {
  return change(*impl_, [&](sharing::Batch &batch) { return batch.grow(toInternal(table), lengths); });
}

Result<Plan> PagedBatch::plan(const Attention &attention, const PlanOptions &options) const {
  if (auto checked = checkServes(impl_->batch, attention); !checked)
    return checked.error();
  return Plan::make(attention, tree(), options);
}

Result<GpuPlan> PagedBatch::plan(const GpuAttention &attention, const GpuPlanOptions &options) const {
  if (auto checked = checkServes(impl_->batch, attention.attention()); !checked)
    return checked.error();
  return GpuPlan::make(attention, tree(), options);
}

const Tree &PagedBatch::tree() const { return impl_->view; }

SharingSummary PagedBatch::summary() const {
  SharingSummary summary;
  summary.requests = static_cast<int>(impl_->batch.size());
  for (const int member : impl_->batch.members())
    summary.requestTokens += impl_->batch.forest().tokens(member);
  summary.tokens = impl_->batch.tree().tokens() - impl_->batch.forest().standInTokens();
  return summary;
}

} // namespace deft
