#include "runtime/plan/Partitions.h"

#include <algorithm>

namespace deft::plan {

namespace {

/// Below this a tile always takes the next query: the tokens fit one step of a kernel.
constexpr int kStepTokens = 64;

/// A query joins a tile when it shares at least 1/8 of what it adds. Cutting there reads at most an
/// eighth more, and what would be a chain of masked runs becomes items of their own.
constexpr int kJoinFactor = 8;

/// Tokens that each query shares with the one before it in plan order: as much as with any earlier one,
/// because the readers of a token are neighbours.
void findShared(const TreeView &view, std::vector<int> &shared) {
  shared.assign(static_cast<std::size_t>(view.queryCount()), 0);
  for (int i = 1; i < view.queryCount(); ++i) {
    const int before = view.queryPlace[i - 1];
    // Every place passed on the way up has this query as its first reader, so it is passed once.
    int place = view.queryPlace[i];
    while (place > before)
      place = view.places[place].parent;
    if (place == before)
      shared[i] = view.queryPos[i - 1] + 1;
    else if (place >= 0)
      shared[i] = view.places[place].position + view.places[place].tokens;
  }
}

} // namespace

void makeUnionTiles(const TreeView &view, int queriesPerTile, PartitionScratch &scratch, TileList &list) {
  findShared(view, scratch.shared);
  scratch.bounds.clear();
  long long tokens = 0;
  int begin = 0;
  for (int i = 0; i < view.queryCount(); ++i) {
    const long long path = view.queryPos[i] + 1;
    const long long shared = scratch.shared[i], added = path - shared;
    const bool isWorthJoining = tokens + added <= kStepTokens || shared * kJoinFactor >= added;
    if (i == 0 || i - begin == queriesPerTile || !isWorthJoining) {
      scratch.bounds.push_back(i);
      begin = i;
      tokens = path;
    } else {
      tokens += added;
    }
  }
  scratch.bounds.push_back(view.queryCount());
  scratch.tiler.tile(view.segments, scratch.bounds, list);
}

} // namespace deft::plan
