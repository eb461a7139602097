#include "runtime/exec/cuda/SelectingTables.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace deft::exec {

namespace {

constexpr int kInvariantTokens = 512; ///< about

/// What a cut costs, in tokens that a block reads: to begin a wave of blocks, to have anything merged, and
/// each part of that. Fitted to times of seven shapes, 1 to 64 queries and two budgets
/// (tests/gpu/records/h200-sparse-tiles.jsonl).
constexpr int kWaveCosts = 192, kMergeCosts = 96, kPartCosts = 4;
/// More waves than this, and a cut that evens out the last one is not worth it.
constexpr int kMostUnevenWaves = 4, kMostUnevenParts = 4;

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

/// Tells the merge that a query has so many partials, `stride` apart.
void addMerged(int query, int first, int stride, int count, SelectingTables &tables) {
  tables.mergeQuery.push_back(query);
  for (int i = 0; i < count; ++i)
    tables.mergeSlot.push_back(first + i * stride);
  tables.mergeBegin.push_back(static_cast<int>(tables.mergeSlot.size()));
}

void addUnited(int index, const UnionShape &shape, SelectingTables &tables) {
  const abi::Union &one = tables.unions[static_cast<std::size_t>(index)];
  const bool isMerged = one.parts > 1;
  for (int part = 0; part < one.parts; ++part) {
    abi::Item item{.queryBegin = one.queryBegin,
                   .queryCount = one.queryCount,
                   .runBegin = index,
                   .runCount = one.parts,
                   .tokens = 1,
                   .partialBegin = isMerged ? tables.partials + part * one.queryCount : -1,
                   .dealtTiles = 0,
                   .commonTokens = part};
    if (shape.writesItems)
      item.runBegin = item.runCount = item.commonTokens = 0;
    tables.unitedItems.insert(tables.unitedItems.end(), static_cast<std::size_t>(shape.itemsOfPart), item);
  }
  if (!isMerged)
    return;
  for (int i = 0; i < one.queryCount; ++i)
    addMerged(one.queryBegin + i, tables.partials + i, one.queryCount, one.parts, tables);
  tables.partials += one.queryCount * one.parts;
}

/// A query that reads its own lists.
void addOwn(int query, int callerIndex, int budget, const SparseSplit::Cut &cut, SelectingTables &tables) {
  const int itemTokens = cut.itemTokens, parts = cut.parts;
  for (int part = 0; part < parts; ++part) {
    const int first = part * itemTokens;
    tables.items.push_back({.queryBegin = query,
                            .queryCount = 1,
                            .runBegin = callerIndex,
                            .runCount = 0,
                            .tokens = std::min(itemTokens, budget - first),
                            .partialBegin = parts > 1 ? tables.partials + part : -1,
                            .dealtTiles = 0,
                            .commonTokens = first});
  }
  if (parts == 1)
    return;
  addMerged(query, tables.partials, 1, parts, tables);
  tables.partials += parts;
}

} // namespace

SparseSplit::Cut SparseSplit::cutInto(int parts) const {
  const int tokens = divideUp(divideUp(budget, parts), tileTokens) * tileTokens;
  return {tokens, divideUp(budget, tokens)};
}

std::int64_t SparseSplit::blocksOf(int queries) const {
  return std::int64_t{blocksOfItem} * std::max(queries, 1);
}

int SparseSplit::mostParts(int queries) const {
  const std::int64_t blocks = blocksOf(queries);
  const bool isUneven = blocks <= std::int64_t{kMostUnevenWaves} * blocksAtOnce;
  const auto most = std::max<std::int64_t>(blocksAtOnce / blocks, isUneven ? kMostUnevenParts : 1);
  return static_cast<int>(std::min<std::int64_t>(most, divideUp(budget, tileTokens)));
}

double SparseSplit::cost(const Cut &cut, int queries) const {
  const std::int64_t waves = (blocksOf(queries) * cut.parts + blocksAtOnce - 1) / blocksAtOnce;
  return static_cast<double>(waves * (cut.itemTokens + kWaveCosts) + kPartCosts * cut.parts +
                             (cut.parts > 1 ? kMergeCosts : 0));
}

std::vector<SparseSplit::Cut> SparseSplit::cuts(int queries) const {
  std::vector<Cut> all;
  for (int parts = 1, most = mostParts(queries); parts <= most; ++parts)
    if (const Cut next = cutInto(parts); all.empty() || next != all.back())
      all.push_back(next);
  std::stable_sort(all.begin(), all.end(),
                   [&](const Cut &a, const Cut &b) { return cost(a, queries) < cost(b, queries); });
  return all;
}

SparseSplit::Cut SparseSplit::cheapest(int queries) const {
  Cut best = cutInto(1);
  for (int parts = 2, most = mostParts(queries); parts <= most; ++parts)
    if (const Cut other = cutInto(parts); cost(other, queries) < cost(best, queries))
      best = other;
  return best;
}

SparseSplit::Cut SparseSplit::cut(int queries) const {
  if (isInvariant)
    return cutInto(divideUp(budget, std::max(kInvariantTokens, tileTokens)));
  const Cut byCosts = cheapest(queries);
  // Fewer queries than it was measured for, down to the next number that was, may have it, too.
  const auto measured =
      std::lower_bound(tuned.begin(), tuned.end(), queries,
                       [](const config::SparseCut &one, int wanted) { return one.queries < wanted; });
  if (measured == tuned.end() || measured->itemTokens <= 0 || measured->queries > 2 * queries)
    return byCosts;
  const int tokens =
      std::min(divideUp(measured->itemTokens, tileTokens), divideUp(budget, tileTokens)) * tileTokens;
  const Cut other{tokens, divideUp(budget, tokens), true};
  if (other.parts > mostParts(queries))
    return byCosts;
  // By the costs it may be the dearer one, by as much as they were wrong where it was measured, and no more:
  // a few queries less, and the rule's cut may make a wave less that it did not make there.
  const int there = measured->queries;
  return cost(other, queries) * cost(cheapest(there), there) <= cost(byCosts, queries) * cost(other, there)
             ? other
             : byCosts;
}

int SparseSplit::mostItems(int queries) const {
  const std::int64_t all = queries; // of many and a large budget, beyond 32 bits
  const auto asInt = [](std::int64_t items) {
    return static_cast<int>(std::min<std::int64_t>(items, std::numeric_limits<int>::max()));
  };
  if (isInvariant)
    return asInt(all * cut(queries).parts);
  // As mostParts() has it for any number of them.
  const int tiles = divideUp(budget, tileTokens);
  const std::int64_t ofWave = std::min<std::int64_t>(blocksAtOnce / blocksOfItem, all * tiles);
  const std::int64_t unevenQueries = std::int64_t{kMostUnevenWaves} * blocksAtOnce / blocksOfItem;
  const std::int64_t uneven = std::min(all, unevenQueries) * std::min(kMostUnevenParts, tiles);
  return asInt(std::max({all, ofWave, uneven}));
}

SelectingTables selectingTables(const plan::Plan &plan, const SparseSplit &split, int mostUnited,
                                plan::Paths &paths) {
  paths.read(plan);
  SelectingTables tables;
  const int queries = paths.queryCount();
  tables.positions = paths.longest();
  tables.stretchBegin.push_back(0);
  for (int query = 0; query < queries; ++query) {
    addPath(paths, query, tables.stretches);
    tables.stretchBegin.push_back(static_cast<int>(tables.stretches.size()));
  }
  tables.unions = findUnions(plan, paths, split.unions, split.budget, mostUnited);
  const int unions = static_cast<int>(tables.unions.size());
  tables.cut = split.cut(queries - tables.unitedQueries());
  for (int query = 0, next = 0; query < queries;) {
    if (next < unions && tables.unions[static_cast<std::size_t>(next)].queryBegin == query) {
      query += tables.unions[static_cast<std::size_t>(next)].queryCount;
      addUnited(next++, split.unions, tables);
    } else {
      addOwn(query, plan.callerIndex[static_cast<std::size_t>(query)], split.budget, tables.cut, tables);
      ++query;
    }
  }
  return tables;
}

} // namespace deft::exec
