#include "runtime/plan/Partitions.h"

#include <algorithm>

namespace deft::plan {

void makeQueryTiles(const TreeView &view, PartitionScratch &scratch, TileList &list) {
  // Places without tokens make no runs; jumping over them keeps the way up as short as the path's runs.
  std::vector<int> &above = scratch.above;
  above.resize(view.places.size());
  for (std::size_t p = 0; p < above.size(); ++p) {
    const int parent = view.places[p].parent;
    above[p] = parent < 0 || view.places[static_cast<std::size_t>(parent)].tokens > 0
                   ? parent
                   : above[static_cast<std::size_t>(parent)];
  }

  // The whole nodes above the query at hand, root first. Neighbours share most of them.
  std::vector<Segment> &path = scratch.segments;
  path.clear();
  int place = -1;
  for (int query = 0; query < view.queryCount() && !list.isFull(); ++query) {
    const int own = view.queryPlace[static_cast<std::size_t>(query)];
    if (own != place) {
      place = own;
      while (!path.empty() && view.places[static_cast<std::size_t>(path.back().place)].subtreeEnd <= place)
        path.pop_back();
      const int known = path.empty() ? -1 : path.back().place;
      const std::size_t size = path.size();
      for (int p = above[static_cast<std::size_t>(place)]; p > known; p = above[static_cast<std::size_t>(p)])
        path.push_back({p, 0, view.places[static_cast<std::size_t>(p)].tokens, 0, 0});
      std::reverse(path.begin() + static_cast<std::ptrdiff_t>(size), path.end());
    }
    const auto at = static_cast<std::size_t>(query);
    list.addQueryTile(query, path, {place, 0, view.seen[at], query, query + 1}, view.queryPos[at] + 1);
  }
}

} // namespace deft::plan
