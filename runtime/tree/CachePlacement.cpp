#include "runtime/tree/CachePlacement.h"

#include "runtime/tree/Places.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

namespace deft::tree {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

/// Shuffles like std::shuffle, but with the same result in every standard library.
void shuffle(std::vector<int> &values, std::mt19937_64 &random) {
  for (std::size_t i = values.size(); i > 1; --i)
    std::swap(values[i - 1], values[random() % i]);
}

} // namespace

Result<CachePlacement> placeInCache(KvTree &tree, const PlacementOptions &options) {
  const int slotsPerPage = std::max(options.pageSize, 1);
  const bool isScattered = options.order == PlacementOrder::Scattered;
  std::mt19937_64 random(options.seed);
  std::vector<int> nodes(tree.nodes().size());
  std::iota(nodes.begin(), nodes.end(), 0);
  if (isScattered)
    shuffle(nodes, random);

  std::int64_t end = 0; // of the table, in tokens
  for (int node : nodes) {
    if (!tree.isAlive(node))
      continue;
    if (isScattered) // a gap of up to two pages, so a node may start anywhere in a page
      end += static_cast<std::int64_t>(random() % (2 * slotsPerPage + 1));
    const int tokens = tree.nodes()[node].tokens;
    if (end + tokens > KvTree::kMaxTokens)
      return Error{
          ErrorCode::Diagnostics,
          "the tree's tokens do not fit one cache of " + std::to_string(KvTree::kMaxTokens) + " tokens", ""};
    if (auto placed = tree.place(node, static_cast<int>(end)); !placed)
      return placed.error();
    end += tokens;
  }

  CachePlacement placement;
  placement.pageSize = options.pageSize;
  const int tablePages = static_cast<int>((end + slotsPerPage - 1) / slotsPerPage);
  const int sparePages = isScattered && options.pageSize > 0 ? tablePages / 4 + 1 : 0;
  placement.poolPages = std::max(tablePages + sparePages, options.poolPages);
  if (options.pageSize == 0)
    return placement;
  if (placement.poolPages > KvTree::kMaxTokens / slotsPerPage)
    return Error{ErrorCode::Usage,
                 "a pool of " + std::to_string(placement.poolPages) + " pages holds more than " +
                     std::to_string(KvTree::kMaxTokens) + " tokens",
                 ""};
  std::vector<int> pool(placement.poolPages);
  std::iota(pool.begin(), pool.end(), 0);
  if (isScattered)
    shuffle(pool, random);
  placement.pageTable.assign(pool.begin(), pool.begin() + tablePages);
  return placement;
}

Result<KvTree> placedTree(const KvTree &tree, int pageSize) {
  KvTree placed = tree;
  if (!checkPlaced(placed))
    if (auto placement = placeInCache(placed, {.pageSize = pageSize}); !placement)
      return placement.error();
  return placed;
}

} // namespace deft::tree
