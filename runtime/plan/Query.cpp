#include "runtime/plan/Partitions.h"

#include <algorithm>
#include <numeric>

namespace deft::plan {

void makeQueryTiles(const TreeView &view, PartitionScratch &scratch, TileList &list) {
  if (view.isClipped) { // a query's path is then not everything above it
    scratch.bounds.resize(view.callerIndex.size() + 1);
    std::iota(scratch.bounds.begin(), scratch.bounds.end(), 0);
    scratch.tiler.tile(view.segments, scratch.bounds, list);
    return;
  }
  std::vector<int> &runsTo = scratch.counts; // nodes with tokens on the path to each place, including it
  runsTo.resize(view.places.size());
  int shared = 0; // the first runs that the next path shares with the path added last
  for (int p = 0; p < view.placeCount(); ++p) {
    const Place &place = view.places[static_cast<std::size_t>(p)];
    const int length = place.parent < 0 ? 0 : runsTo[static_cast<std::size_t>(place.parent)];
    runsTo[static_cast<std::size_t>(p)] = length + (place.tokens > 0);
    shared = std::min(shared, length);
    int lastSeen = -1; // by the last query of this place
    for (int query = place.ownBegin; query < place.ownEnd; ++query) {
      const int seen = view.seen(place, query), tokens = place.position + seen;
      if (tokens == 0)
        continue;
      const int runCount = length + (seen > 0);
      list.addPath(query, 1, p, runCount, seen == lastSeen ? runCount : shared, tokens);
      lastSeen = seen;
      shared = length;
    }
    if (lastSeen == place.tokens)
      shared = runsTo[static_cast<std::size_t>(p)];
  }
}

} // namespace deft::plan
