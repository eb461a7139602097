#include "runtime/plan/Partitions.h"

#include <algorithm>

namespace deft::plan {

void makeQueryTiles(const TreeView &view, PartitionScratch &scratch, TileList &list) {
  // The path to the place at hand, root first, without places of no tokens. Each place comes and goes once.
  std::vector<int> &path = scratch.order;
  path.resize(std::max<std::size_t>(path.size(), 16));
  int length = 0, shared = 0; // so many of its first runs are those of the path added last
  for (int p = 0; p < view.placeCount() && !list.isFull(); ++p) {
    const Place &place = view.places[static_cast<std::size_t>(p)];
    while (length > 0 && view.places[static_cast<std::size_t>(path[length - 1])].subtreeEnd <= p)
      --length;
    shared = std::min(shared, length);
    int lastSeen = -1; // by the last query of this place
    for (int query = place.ownBegin; query < place.ownEnd; ++query) {
      const int seen = view.seen[static_cast<std::size_t>(query)], tokens = place.position + seen;
      if (tokens == 0)
        continue;
      const std::size_t runBegin = list.runs.size();
      if (seen == lastSeen) {
        list.endPath(query, seen > 0 ? length + 1 : length, runBegin, tokens);
        continue;
      }
      for (int i = shared; i < length; ++i)
        list.addPathRun(path[static_cast<std::size_t>(i)],
                        view.places[static_cast<std::size_t>(path[static_cast<std::size_t>(i)])].tokens);
      if (seen > 0)
        list.addPathRun(p, seen);
      list.endPath(query, shared, runBegin, tokens);
      lastSeen = seen;
      shared = length;
    }
    if (place.tokens == 0 || place.subtreeEnd == p + 1)
      continue;
    if (static_cast<std::size_t>(length) == path.size())
      path.resize(2 * path.size());
    path[static_cast<std::size_t>(length++)] = p;
    if (lastSeen == place.tokens)
      shared = length;
  }
}

} // namespace deft::plan
