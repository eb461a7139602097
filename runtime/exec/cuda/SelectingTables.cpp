#include "runtime/exec/cuda/SelectingTables.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace deft::exec {

namespace {

/// An item of fewer tokens is over before it has begun.
constexpr int kLeastTokens = 128;
constexpr int kInvariantTokens = 512; ///< about

int divideUp(int a, int b) { return (a + b - 1) / b; }

/// The query's stretches, those in one where one goes on where the other ends; up to the path's end, though
/// its last tokens may be hidden: which of a path's tokens are its last ones is counted from there.
void addPath(const plan::Paths &paths, int query, std::vector<abi::PathStretch> &stretches) {
  const std::size_t first = stretches.size();
  for (const plan::PathStretch &own : paths.of(query)) {
    if (stretches.size() > first) {
      abi::PathStretch &last = stretches.back();
      if (last.position + last.tokens == own.position && last.location + last.tokens == own.location &&
          last.depth == own.depth) {
        last.tokens += own.tokens;
        continue;
      }
    }
    stretches.push_back({own.position, own.tokens, own.location, own.depth});
  }
  const int end = paths.queryPos(query) + 1;
  if (stretches.size() == first || stretches.back().position + stretches.back().tokens < end)
    stretches.push_back({end, 0, 0, 0});
}

} // namespace

int SparseSplit::mostParts() const { return divideUp(budget, std::max(kLeastTokens, tileTokens)); }
int SparseSplit::wantedParts(int queries) const {
  if (isInvariant)
    return std::min(divideUp(budget, kInvariantTokens), mostParts());
  return std::clamp(items / std::max(queries, 1), 1, mostParts());
}
int SparseSplit::itemTokens(int queries) const {
  return divideUp(divideUp(budget, wantedParts(queries)), tileTokens) * tileTokens;
}
int SparseSplit::parts(int queries) const { return divideUp(budget, itemTokens(queries)); }
int SparseSplit::mostItems(int queries) const {
  const int most = isInvariant ? std::numeric_limits<int>::max() : std::max(queries, items);
  // Of many queries and a large budget, beyond 32 bits.
  const auto all = std::int64_t{queries} * (isInvariant ? parts(queries) : mostParts());
  return static_cast<int>(std::min<std::int64_t>(most, all));
}

SelectingTables selectingTables(const plan::Plan &plan, const SparseSplit &split, plan::Paths &paths) {
  paths.read(plan);
  SelectingTables tables;
  const int queries = paths.queryCount();
  tables.positions = paths.longest();
  tables.stretchBegin.push_back(0);
  for (int query = 0; query < queries; ++query) {
    addPath(paths, query, tables.stretches);
    tables.stretchBegin.push_back(static_cast<int>(tables.stretches.size()));
  }
  const int itemTokens = split.itemTokens(queries);
  tables.parts = split.parts(queries);
  for (int query = 0; query < queries; ++query)
    for (int part = 0; part < tables.parts; ++part) {
      const int first = part * itemTokens;
      tables.items.push_back({.queryBegin = query,
                              .queryCount = 1,
                              .runBegin = plan.callerIndex[static_cast<std::size_t>(query)],
                              .runCount = 0,
                              .tokens = std::min(itemTokens, split.budget - first),
                              .partialBegin = tables.parts > 1 ? query * tables.parts + part : -1,
                              .dealtTiles = 0,
                              .commonTokens = first});
    }
  return tables;
}

} // namespace deft::exec
