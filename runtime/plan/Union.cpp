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
      : view_(view), sizes_(sizes), tileUs_(tileUs), scratch_(scratch), queries_(view.queryCount()),
        queryPos_(view.queryPos.data()) {}

  /// Fills scratch.bounds.
  void find() {
    findShared();
    scratch_.cuts.assign(count(), {std::numeric_limits<double>::infinity(), -1});
    cuts_ = scratch_.cuts.data();
    cuts_[0].us = 0;
    scratch_.windows.resize(sizes_.size());
    for (PartitionScratch::Window &window : scratch_.windows) {
      window.queue.resize(count());
      window.begin = window.end = window.pushed = 0;
    }
    int barrier = 0;
    for (int i = 0; i < queries_; ++i) {
      if (cuts_[i].before < 0 && i > 0)
        continue; // no tile ends here
      if (barrier <= i)
        for (barrier = i + 1; barrier < queries_ && maySpan(barrier);)
          ++barrier;
      const Start start{i, cuts_[i].us + tileUs_, path(i) - added_[i + 1]};
      int last = i;
      for (std::size_t s = 0; s < sizes_.size(); ++s) {
        const int end = std::min(i + sizes_[s].queries, barrier);
        if (end == last)
          break; // the barrier is nearer than any larger size
        last = end;
        relax(start, end, s);
        if (isUniform_ || (s > 0 && s + 1 < sizes_.size() && end < barrier))
          continue; // where neighbours share least is looked for within the smallest and the largest size
        if (const int least = leastShared(scratch_.windows[s], i + 1, end); least < end)
          relax(start, least, sizeOf(least - i, s));
      }
    }
    scratch_.bounds.clear();
    for (int at = queries_; at >= 0; at = cuts_[at].before)
      scratch_.bounds.push_back(at);
    std::reverse(scratch_.bounds.begin(), scratch_.bounds.end());
  }

private:
  std::size_t count() const { return static_cast<std::size_t>(queries_) + 1; }
  int path(int query) const { return queryPos_[query] + 1; }

  /// Tokens that each query shares with the one before it in plan order: as many as with any earlier one,
  /// because the readers of a token are neighbours. And the sums of what each adds to the one before.
  void findShared() {
    scratch_.shared.resize(count());
    scratch_.added.resize(count());
    int *const shared = scratch_.shared.data(), *const added = scratch_.added.data();
    const Place *const places = view_.places.data();
    int before = -1;
    added[0] = 0;
    for (int own = 0; own < view_.placeCount(); ++own)
      for (int i = places[own].ownBegin; i < places[own].ownEnd; ++i) {
        // Every place passed on the way up has this query as its first reader, so it is passed once.
        int place = own;
        while (place > before)
          place = places[place].parent;
        shared[i] = place < 0         ? 0
                    : place == before ? path(i - 1)
                                      : places[place].position + places[place].tokens;
        added[i + 1] = added[i] + path(i) - shared[i];
        before = own;
      }
    isUniform_ = std::all_of(shared + 1, shared + queries_, [&](int one) { return one == shared[1]; });
    shared[queries_] = 0;
    shared_ = shared;
    added_ = added;
  }

  /// Whether a tile may have this query and the one before it.
  bool maySpan(int query) const {
    const long long shared = shared_[query], added = path(query) - shared;
    return shared * kJoinFactor >= added || path(query - 1) + added <= kStepTokens;
  }

  /// Where in [first, last] neighbours share least; of several such places, the last. Both bounds only rise
  /// from call to call.
  int leastShared(PartitionScratch::Window &window, int first, int last) const {
    int *const queue = window.queue.data(); // places by rising shares, the least first
    int begin = window.begin, end = window.end;
    for (int next = std::max(window.pushed + 1, first); next <= last; ++next) {
      while (begin < end && shared_[queue[end - 1]] >= shared_[next])
        --end;
      queue[end++] = next;
    }
    while (queue[begin] < first)
      ++begin;
    window.begin = begin;
    window.end = end;
    window.pushed = std::max(window.pushed, last);
    return queue[begin];
  }

  /// Of a tile: what it costs before its tokens, and its first query's tokens less `added_` up to there.
  struct Start {
    int query;
    double us;
    int tokens;
  };

  /// The smallest size for so many queries, at most `size`.
  std::size_t sizeOf(int queries, std::size_t size) const {
    while (size > 0 && sizes_[size - 1].queries >= queries)
      --size;
    return size;
  }

  /// Tries a tile of size `size` from `start` to the query before `end`.
  void relax(const Start &start, int end, std::size_t size) {
    const double us = start.us + static_cast<double>(start.tokens + added_[end]) * sizes_[size].tokenUs;
    // Which one is cheaper nobody can predict: no branch, whatever a compiler makes of a selection.
    PartitionScratch::Cut &cut = cuts_[end];
    const int mask = -static_cast<int>(us < cut.us);
    cut.before ^= (cut.before ^ start.query) & mask;
    cut.us = std::min(us, cut.us);
  }

  const TreeView &view_;
  std::span<const TilePrice> sizes_;
  double tileUs_;
  PartitionScratch &scratch_;
  int queries_;
  bool isUniform_ = false; ///< all neighbours share the same: the branches of one prompt
  const int *queryPos_, *shared_ = nullptr, *added_ = nullptr;
  PartitionScratch::Cut *cuts_ = nullptr;
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
