#include "runtime/plan/Partitions.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace deft::plan {

namespace {

/// Two queries may always share a tile if their tokens fit one step of a kernel.
constexpr int kStepTokens = 64;

/// A query may join a tile if it shares at least 1/8 of the tokens that it adds. Cutting there reads at most
/// an eighth more, and separate items replace what would be a chain of masked runs.
constexpr int kJoinFactor = 8;

/// Finds the cheapest row of tiles by dynamic programming over their ends: after as many queries as a size
/// holds, or where neighbours share least before that. Linear in queries times sizes. Long causal stretches
/// are cut into tiles of the one cheapest size, which takes no time per query.
class UnionCuts {
public:
  UnionCuts(const TreeView &view, std::span<const TilePrice> sizes, double tileUs, PartitionScratch &scratch)
      : view_(view), sizes_(sizes), tileUs_(tileUs), scratch_(scratch),
        allQueryPos_(view.isClipped ? view.clippedPos.data() : view.queryPos.data()) {}

  /// Fills scratch.bounds.
  void find() {
    scratch_.bounds.assign(1, 0);
    const std::size_t count = view_.segments.size();
    for (std::size_t s = 0; s < count;) {
      const Segment &segment = view_.segments[s++];
      if (segment.slope == 0)
        continue;
      int end = segment.queryBegin + segment.tokens;
      for (; s < count && view_.segments[s].slope != 0 && view_.segments[s].queryBegin == end; ++s)
        end += view_.segments[s].tokens;
      cutCausal(segment.queryBegin, end);
    }
    cutUpTo(view_.queryCount());
  }

private:
  /// Cuts the causal stretch [begin, end) into tiles, except for the last one, which other queries may join.
  void cutCausal(int begin, int end) {
    if (end - begin < 2 * sizes_.back().queries)
      return;
    const int middle = begin + (end - begin) / 2;
    const double path = allQueryPos_[middle] + 1;
    const auto priceOf = [&](const TilePrice &size) { // of one query
      return (tileUs_ + (path + size.queries) * size.tokenUs) / size.queries;
    };
    const int queries =
        std::min_element(sizes_.begin(), sizes_.end(), [&](const TilePrice &a, const TilePrice &b) {
          return priceOf(a) < priceOf(b);
        })->queries;
    cutUpTo(begin);
    for (int at = begin + queries; at <= end; at += queries)
      scratch_.bounds.push_back(at);
  }

  /// Cuts the queries from the last bound on into tiles.
  void cutUpTo(int end) {
    const int begin = scratch_.bounds.back();
    queries_ = end - begin;
    if (queries_ == 0)
      return;
    queryPos_ = allQueryPos_ + begin;
    shared_ = view_.shared.data() + begin;
    findCheapest();
    const std::size_t first = scratch_.bounds.size();
    for (int at = queries_; at > 0 && cheapest_[at].lastBegin >= 0; at = cheapest_[at].lastBegin)
      scratch_.bounds.push_back(begin + at);
    std::reverse(scratch_.bounds.begin() + static_cast<std::ptrdiff_t>(first), scratch_.bounds.end());
  }

  void findCheapest() {
    addUp();
    if (!isUniform_)
      findNoMore();
    scratch_.cheapest.assign(count(), {std::numeric_limits<double>::infinity(), -1});
    cheapest_ = scratch_.cheapest.data();
    cheapest_[0].us = 0;
    scratch_.least.assign(sizes_.size(), 0);
    const int *nextBarrier = scratch_.barriers.data();
    int *const least = scratch_.least.data();
    int barrier = 0;
    for (int i = 0; i < queries_; ++i) {
      if (cheapest_[i].lastBegin < 0 && i > 0)
        continue; // no tile ends here
      while (barrier <= i)
        barrier = *nextBarrier++;
      const Start start{i, cheapest_[i].us + tileUs_, path(i) - added_[i + 1]};
      int last = i;
      for (std::size_t s = 0; s < sizes_.size(); ++s) {
        const int end = std::min(i + sizes_[s].queries, barrier);
        if (end == last)
          break; // the barrier is closer than any larger size
        last = end;
        relax(start, end, s);
        if (isUniform_ || (s > 0 && s + 1 < sizes_.size() && end < barrier))
          continue; // look for the place of least sharing only between the smallest and the largest size
        if (const int at = leastShared(least[s], i + 1, end); at < end)
          relax(start, at, sizeOf(at - i, s));
      }
    }
  }

  std::size_t count() const { return static_cast<std::size_t>(queries_) + 1; }
  int path(int query) const { return queryPos_[query] + 1; }

  /// Adds up the tokens that each query adds to the one before it, and finds where tiles must end.
  void addUp() {
    scratch_.added.resize(count());
    scratch_.barriers.resize(count() + 1);
    int *const sums = scratch_.added.data(), *barrier = scratch_.barriers.data();
    int sum = 0, before = 0, differ = 0;
    for (int i = 0; i < queries_; ++i) {
      const int shared = shared_[i], added = path(i) - shared;
      sums[i] = sum;
      sum += added;
      differ |= i > 0 ? shared ^ shared_[1] : 0;
      // Overwritten by the next barrier if the two queries may share a tile.
      *barrier = i;
      barrier += std::int64_t{shared} * kJoinFactor < added && std::int64_t{before} + added > kStepTokens;
      before = path(i);
    }
    sums[queries_] = sum;
    *barrier = queries_;
    isUniform_ = differ == 0;
    added_ = sums;
  }

  /// For each query: the next one that shares no more with its predecessor. (Behind the last one: none.)
  void findNoMore() {
    scratch_.noMore.resize(count());
    int *const noMore = scratch_.noMore.data();
    noMore[queries_] = queries_ + 1;
    for (int i = queries_ - 1; i >= 0; --i) {
      int next = i + 1;
      while (next < queries_ && shared_[next] > shared_[i])
        next = noMore[next];
      noMore[i] = next;
    }
    noMore_ = noMore;
  }

  /// The place in [first, last] where neighbours share least; the last one of several. `least` is the result
  /// of the previous call. Since then both bounds have only risen, and so does the result, so all calls
  /// together take linear time.
  int leastShared(int &least, int first, int last) const {
    int at = std::max(least, first);
    while (noMore_[at] <= last)
      at = noMore_[at];
    return least = at;
  }

  /// The beginning of a tile: its first query, the tile's cost except its tokens, and that query's tokens
  /// minus `added_` up to there.
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
    // A branch would be mispredicted; this form has none, however compilers translate a selection.
    PartitionScratch::CheapestTiles &best = cheapest_[end];
    const int mask = -static_cast<int>(us < best.us);
    best.lastBegin ^= (best.lastBegin ^ start.query) & mask;
    best.us = std::min(us, best.us);
  }

  const TreeView &view_;
  std::span<const TilePrice> sizes_;
  double tileUs_;
  PartitionScratch &scratch_;
  const int *const allQueryPos_;
  // For the current queries:
  int queries_ = 0;
  bool isUniform_ = false; ///< all neighbours share equally, as branches of one prompt do
  const int *queryPos_ = nullptr, *shared_ = nullptr, *added_ = nullptr, *noMore_ = nullptr;
  PartitionScratch::CheapestTiles *cheapest_ = nullptr;
};

} // namespace

void makeUnionTiles(const TreeView &view, std::span<const TilePrice> sizes, double tileUs,
                    PartitionScratch &scratch, TileList &list) {
  if (view.queryCount() == 0)
    return;
  UnionCuts(view, sizes, tileUs, scratch).find();
  list.tiles.reserve(list.tiles.size() + scratch.bounds.size());
  list.runs.reserve(list.runs.size() + 2 * view.segments.size()); // few segments are in many tiles
  scratch.tiler.tile(view.segments, scratch.bounds, list);
}

} // namespace deft::plan
