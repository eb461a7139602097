#include "runtime/plan/Io.h"

#include "runtime/plan/CostModel.h"

namespace deft::plan {

IoBytes &IoBytes::operator+=(const IoBytes &other) {
  cache += other.cache;
  cacheOnce += other.cacheOnce;
  queries += other.queries;
  outputs += other.outputs;
  partials += other.partials;
  masks += other.masks;
  work += other.work;
  return *this;
}

IoBytes io(const Plan &plan, const VariantFacts &facts) {
  const std::int64_t tokenBytes = facts.tokenBytes();
  const std::int64_t heads = std::int64_t{facts.ratio} * facts.kvHeads;
  constexpr std::int64_t kMaskBytes = 2 * sizeof(int); // queryBegin and queryEnd
  std::int64_t tokens = 0, queries = 0;
  for (const abi::Item &item : plan.items) {
    tokens += item.tokens;
    queries += item.queryCount;
  }
  const auto runs = static_cast<std::int64_t>(plan.runs.size());
  const auto items = static_cast<std::int64_t>(plan.items.size());
  const auto merged = static_cast<std::int64_t>(plan.mergeQuery.size() + plan.mergeBegin.size());
  IoBytes bytes;
  bytes.cache = tokens * tokenBytes;
  bytes.cacheOnce = plan.readTokens * tokenBytes;
  bytes.queries = queries * heads * facts.tensors.q.rowBytes();
  bytes.outputs = plan.queryCount() * heads * facts.tensors.out.rowBytes();
  // A slot is written by its item, and read by the merge if the map contains it.
  bytes.partials =
      (plan.partialSlots + static_cast<std::int64_t>(plan.mergeSlot.size())) * heads * partialRowBytes(facts);
  bytes.masks = runs * kMaskBytes * facts.kvHeads;
  bytes.work =
      (items * static_cast<std::int64_t>(sizeof(abi::Item)) +
       runs * static_cast<std::int64_t>(sizeof(abi::Run) - kMaskBytes)) *
          facts.kvHeads +
      (merged + static_cast<std::int64_t>(plan.mergeSlot.size())) * static_cast<std::int64_t>(sizeof(int));
  return bytes;
}

} // namespace deft::plan
