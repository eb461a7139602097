#include "runtime/plan/Partitions.h"

#include <algorithm>
#include <limits>

namespace deft::plan {

namespace {

/// Two queries whose tokens fit one step of a kernel may always share a tile.
constexpr int kStepTokens = 64;

/// A query may join a tile when it shares at least 1/8 of what it adds. Cutting there reads at most an
/// eighth more, and what would be a chain of masked runs becomes items of their own.
constexpr int kJoinFactor = 8;

/// The cheapest row of tiles by dynamic programming over where they end: after as many queries as a size
/// holds, or where neighbours share least within that. Linear in queries times sizes.
class UnionCuts {
public:
  UnionCuts(const TreeView &view, std::span<const TilePrice> sizes, double tileUs, PartitionScratch &scratch)
      : view_(view), sizes_(sizes), tileUs_(tileUs), scratch_(scratch), queries_(view.queryCount()) {}

  /// Fills scratch.bounds.
  void find() {
    findShared();
    scratch_.cuts.assign(count(), {std::numeric_limits<double>::infinity(), -1});
    scratch_.cuts[0].us = 0;
    scratch_.windows.resize(sizes_.size());
    for (PartitionScratch::Window &window : scratch_.windows) {
      window.queue.resize(count());
      window.begin = window.end = window.pushed = 0;
    }
    int barrier = 0;
    for (int i = 0; i < queries_; ++i) {
      if (scratch_.cuts[i].before < 0 && i > 0)
        continue; // no tile ends here
      if (barrier <= i)
        for (barrier = i + 1; barrier < queries_ && maySpan(barrier);)
          ++barrier;
      int last = i;
      for (std::size_t s = 0; s < sizes_.size(); ++s) {
        const int end = std::min(i + sizes_[s].queries, barrier);
        if (end == last)
          break; // the barrier is nearer than any larger size
        last = end;
        relax(i, end);
        if (const int least = leastShared(scratch_.windows[s], i + 1, end); least < end)
          relax(i, least);
      }
    }
    scratch_.bounds.clear();
    for (int at = queries_; at >= 0; at = scratch_.cuts[at].before)
      scratch_.bounds.push_back(at);
    std::reverse(scratch_.bounds.begin(), scratch_.bounds.end());
  }

private:
  std::size_t count() const { return static_cast<std::size_t>(queries_) + 1; }
  int path(int query) const { return view_.queryPos[query] + 1; }

  /// Tokens that each query shares with the one before it in plan order: as many as with any earlier one,
  /// because the readers of a token are neighbours. And the sums of what each adds to the one before.
  void findShared() {
    std::vector<int> &shared = scratch_.shared;
    shared.assign(count(), 0);
    scratch_.added.assign(count(), 0);
    for (int i = 0; i < queries_; ++i) {
      const int before = i > 0 ? view_.queryPlace[i - 1] : -1;
      // Every place passed on the way up has this query as its first reader, so it is passed once.
      int place = view_.queryPlace[i];
      while (place > before)
        place = view_.places[place].parent;
      if (place >= 0)
        shared[i] = place == before ? path(i - 1) : view_.places[place].position + view_.places[place].tokens;
      scratch_.added[i + 1] = scratch_.added[i] + path(i) - shared[i];
    }
  }

  /// Whether a tile may have this query and the one before it.
  bool maySpan(int query) const {
    const long long shared = scratch_.shared[query], added = path(query) - shared;
    return shared * kJoinFactor >= added || path(query - 1) + added <= kStepTokens;
  }

  /// Where in [first, last] neighbours share least; of several such places, the last. Both bounds only rise
  /// from call to call.
  int leastShared(PartitionScratch::Window &window, int first, int last) const {
    for (window.pushed = std::max(window.pushed, first - 1); window.pushed < last;) {
      const int next = ++window.pushed;
      while (window.begin < window.end &&
             scratch_.shared[window.queue[window.end - 1]] >= scratch_.shared[next])
        --window.end;
      window.queue[window.end++] = next;
    }
    while (window.queue[window.begin] < first)
      ++window.begin;
    return window.queue[window.begin];
  }

  /// Tries a tile of the queries [begin, end).
  void relax(int begin, int end) {
    const TilePrice *price = sizes_.data();
    while (price->queries < end - begin)
      ++price;
    const double tokens =
        static_cast<double>(path(begin)) + (scratch_.added[end] - scratch_.added[begin + 1]);
    const double us = scratch_.cuts[begin].us + tileUs_ + tokens * price->tokenUs;
    if (us < scratch_.cuts[end].us)
      scratch_.cuts[end] = {us, begin};
  }

  const TreeView &view_;
  std::span<const TilePrice> sizes_;
  double tileUs_;
  PartitionScratch &scratch_;
  int queries_;
};

} // namespace

void makeUnionTiles(const TreeView &view, std::span<const TilePrice> sizes, double tileUs,
                    PartitionScratch &scratch, TileList &list) {
  if (view.queryCount() == 0)
    return;
  UnionCuts(view, sizes, tileUs, scratch).find();
  scratch.tiler.tile(view.segments, scratch.bounds, list);
}

} // namespace deft::plan
