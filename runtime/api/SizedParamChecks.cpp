#include "runtime/api/SizedParamChecks.h"

#include "runtime/exec/Inputs.h"
#include "runtime/exec/Params.h"

#include <algorithm>
#include <string>

namespace deft::api {

namespace {

/// Slots up to the last one that the plan's items read, whose pages the table has.
std::int64_t slotsRead(const plan::Plan &plan, const int *pageTable, int pageSize) {
  std::int64_t slots = 0;
  for (const abi::Run &run : plan.runs)
    for (int at = run.location, end = run.location + run.tokens; at < end;) { // of a page the last token
      const int next = pageSize > 0 ? std::min(end, (at / pageSize + 1) * pageSize) : end;
      slots = std::max<std::int64_t>(slots, exec::cacheSlotOf(pageTable, pageSize, next - 1) + 1);
      at = next;
    }
  return slots;
}

Result<void> checkCounts(const spec::Variant &variant, std::span<const std::size_t> counts,
                         std::int64_t slots, const char *ofSlots, int queries) {
  const auto &params = variant.params;
  for (std::size_t i = 0; i < params.size() && i < counts.size(); ++i) {
    if (!params[i].isSizedByRun())
      continue;
    const bool isOfTokens = params[i].isOfTokens();
    const std::int64_t all = isOfTokens ? slots : queries;
    const int each = variant.elementsOf(params[i]);
    if (static_cast<std::int64_t>(counts[i]) < all * each)
      return usage("parameter `" + params[i].name + "` (" + exec::paramTypeName(params[i]) + ") has " +
                       std::to_string(counts[i]) + " values, " + (isOfTokens ? ofSlots : "the plan has ") +
                       std::to_string(all) + (isOfTokens ? " slots" : " queries") +
                       (each > 1 ? " of " + std::to_string(each) + " KV heads" : ""),
                   !isOfTokens ? "it has one for each query, in the order of the tree's"
                   : each > 1  ? "it has one for each KV head of each slot of the cache: [page][slot in the "
                                 "page][KV head], or [token][KV head] of a contiguous one"
                               : "it has one for each slot of the cache: [page][slot in the page], or "
                                 "[token] of a contiguous one");
  }
  return {};
}

} // namespace

Result<void> checkSizedParams(const deft_params &params, const plan::Plan &plan, const int *pageTable) {
  const spec::Variant &variant = params.variant();
  if (std::none_of(variant.params.begin(), variant.params.end(),
                   [](const spec::Param &param) { return param.isSizedByRun(); }))
    return {};
  std::vector<std::size_t> counts;
  for (const std::optional<exec::ParamValue> &value : params.values)
    counts.push_back(value ? exec::countOf(*value) : 0);
  return checkCounts(variant, counts, slotsRead(plan, pageTable, variant.cache.pageSize),
                     "the run reads the first ", plan.queryCount());
}

Result<void> checkSizedParams(const spec::Variant &variant, std::span<const std::size_t> counts,
                              std::optional<std::int64_t> cachePages, const plan::Plan &plan) {
  if (cachePages) { // of which entries of a page table, or places, can name no more
    const std::int64_t pages = std::min<std::int64_t>(*cachePages, std::int64_t{1} << 31);
    return checkCounts(variant, counts, pages * std::max(variant.cache.pageSize, 1), "the cache has ",
                       plan.queryCount());
  }
  if (variant.cache.isPaged() && variant.tokenParams() > 0)
    return wrong("k", "has an unknown number of pages, but " + variant.called() + " has an array over tokens",
                 "give its first dimension, so that the size of the array can be checked");
  return checkCounts(variant, counts, plan.tableTokens, "the run reads the first ", plan.queryCount());
}

} // namespace deft::api
