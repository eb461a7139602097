#include "runtime/plan/EdgeAssignment.h"

#include <algorithm>

namespace deft::plan {
namespace {

bool hasReadersBelow(const Place &place) { return place.ownEnd < place.readersEnd; }

} // namespace

inline bool EdgeAssignment::takes(const Entry &entry, int lane, int child, float price, float queries) const {
  switch (entry.isWithChild ? All : static_cast<Choice>(entry.choice(lane))) {
  case None:
    return false;
  case Gaining:
    return price < prices_.partialUs() * queries;
  case Filling:
    return price < entry.fillPrice(lane) * queries;
  case One:
    return entry.one(lane) == child;
  case All:
    return true;
  }
  return false;
}

inline void EdgeAssignment::countAbove(const TreeView &view, int p, Entry &entry) {
  const Place &place = view.places[p];
  entry.depth = 0;
  entry.certainTokens = 0;
  entry.half[0].above = Int4{};
  if (bounds_.edge(p) == EdgeBounds::Edge::Open) {
    const Entry &parent = entryOf(place.parent);
    const int tokens = view.places[place.parent].tokens;
    const Int4 low = parent.half[0].above + tokens;
    entry.depth = parent.depth + (parent.isWithChild ? 0 : 1);
    entry.half[0].above = parent.isWithChild ? low : beforeLast(Int4{}, low);
    if (parent.isWithChild)
      entry.certainTokens = parent.certainTokens + tokens;
    if (entry.depth >= 4) {
      const Int4 high = parent.half[1].above + tokens;
      entry.half[1].above = parent.isWithChild ? high : beforeLast(low, high);
    }
    if (entry.depth >= kLanes - 1)
      entry.half[1].above[3] = place.position - view.places[bounds_.top(p)].position;
  }
  entry.isWithChild = isWithChild(view, p, entry.certainTokens);
}

/// A short node without queries of its own, whose readers all come through one child.
inline bool EdgeAssignment::isWithChild(const TreeView &view, int p, int certainTokens) const {
  const Place &place = view.places[p];
  if (place.ownBegin != place.ownEnd || certainTokens + place.tokens > kMostCertainTokens)
    return false;
  return onlyChild(view, p) >= 0;
}

inline EdgeAssignment::Taken EdgeAssignment::takeChildren(const TreeView &view, int p, Half &half, int h) {
  const Place *const places = view.places.data();
  const int crossing = prices_.fewer(bounds_.readers(p)), end = places[p].subtreeEnd;
  Taken taken;
  Int4 one{};
  for (int c = p + 1; c < end; c = places[c].subtreeEnd) {
    const int count = bounds_.readers(c);
    if (count == 0)
      continue;
    if (bounds_.edge(c) == EdgeBounds::Edge::Apart) {
      taken.mayAllJoin = false;
      continue;
    }
    const Float4 price = entryOf(c).half[h].joinPrice, queries = splat(static_cast<float>(count));
    const Int4 isGain = price < queries * prices_.partialUs(), isFill = price < half.fillPrice * queries;
    taken.gain += select(isGain, price, Float4{});
    taken.gainQueries += select(isGain, queries, Float4{});
    taken.fill += select(isFill, price, Float4{});
    taken.fillQueries += select(isFill, queries, Float4{});
    taken.all += price;
    if (count >= crossing) {
      const Int4 isLess = price < taken.one;
      taken.one = select(isLess, price, taken.one);
      taken.oneQueries = select(isLess, queries, taken.oneQueries);
      one = select(isLess, splat(c - p), one);
    }
  }
  half.one = one;
  return taken;
}

/// The only child below which the place has readers; -1: there are several.
inline int EdgeAssignment::onlyChild(const TreeView &view, int p) const {
  const Place &place = view.places[p];
  int child = p + 1;
  while (bounds_.readers(child) == 0)
    child = view.places[child].subtreeEnd;
  return view.places[child].readersEnd == place.readersEnd ? child : -1;
}

/// With one child there are only two choices: it joins or stands apart.
inline Float4 EdgeAssignment::chooseOnly(const Place &place, int child, Half &half, int h, Float4 tokens,
                                         Int4 isWhole, Float4 alone) {
  Float4 joined = entryOf(child).half[h].joinPrice;
  if (const int own = place.ownEnd - place.ownBegin; own > 0)
    joined += prices_.sameReaders(prices_.readers(own), tokens, isWhole);
  const Int4 isLess = joined < alone;
  half.choice = select(isLess, splat(static_cast<int>(All)), splat(static_cast<int>(None)));
  return select(isLess, joined, alone);
}

inline Float4 EdgeAssignment::chooseBest(const TreeView &view, int p, Half &half, int h, Float4 tokens,
                                         Int4 isWhole, Float4 alone) {
  const int most = bounds_.readers(p);
  const Float4 queries = splat(static_cast<float>(most));
  half.fillPrice = alone * (1 / static_cast<float>(most));
  const Taken taken = takeChildren(view, p, half, h);
  Float4 least = alone;
  Int4 best = splat(static_cast<int>(None));
  const auto take = [&](Choice choice, Float4 us) {
    const Int4 isLess = us < least;
    least = select(isLess, us, least);
    best = select(isLess, splat(static_cast<int>(choice)), best);
  };
  const auto tryOut = [&](Choice choice, Float4 price, Float4 takenQueries) {
    take(choice, price + prices_.otherReaders(most, queries - takenQueries, tokens));
  };
  if (any(taken.gainQueries > Float4{}))
    tryOut(Gaining, taken.gain, taken.gainQueries);
  if (any(taken.fillQueries != taken.gainQueries))
    tryOut(Filling, taken.fill, taken.fillQueries);
  if (any(taken.one < least)) // the others cost at least 0
    tryOut(One, taken.one, taken.oneQueries);
  if (taken.mayAllJoin) {
    const Place &place = view.places[p];
    const int own = place.ownEnd - place.ownBegin;
    take(All, own > 0 ? taken.all + prices_.sameReaders(prices_.readers(own), tokens, isWhole) : taken.all);
  }
  half.choice = best;
  return least;
}

/// The costs of the best choices in four lanes.
inline Float4 EdgeAssignment::choose(const TreeView &view, int p, Half &half, int h) {
  const Place &place = view.places[p];
  const bool isInner = hasReadersBelow(place);
  const int ownTokens = isInner ? place.tokens : readTokens(view, place);
  const Float4 tokens = toFloat(half.above + ownTokens);
  const Int4 isWhole = half.above == splat(place.position);
  const Float4 alone =
      prices_.sameReaders(prices_.readers(bounds_.readers(p)), tokens, isInner ? Int4{} : isWhole);
  if (!bounds_.hasOpenChild(p))
    return alone;
  if (const int child = onlyChild(view, p); child >= 0)
    return chooseOnly(place, child, half, h, tokens, isWhole, alone);
  return chooseBest(view, p, half, h, tokens, isWhole, alone);
}

inline void EdgeAssignment::fill(const TreeView &view, int p, Entry &entry) {
  if (entry.isWithChild) { // take the child's costs: its lanes count the same ancestors
    const int child = onlyChild(view, p);
    for (int h = 0; h < entry.halves(); ++h)
      entry.half[h].joinPrice = entryOf(child).half[h].joinPrice;
    return;
  }
  const Int4 lane{1, 2, 3, 4}, depth = splat(entry.depth);
  const Float4 low = choose(view, p, entry.half[0], 0);
  const float apart = low[0];
  if (entry.depth < 4) [[likely]] {
    entry.half[0].joinPrice = select(depth >= lane, behindFirst(low) - apart, splat(kNever));
    return;
  }
  const Float4 high = choose(view, p, entry.half[1], 1);
  entry.half[0].joinPrice = select(depth >= lane, behindFirst(low, high) - apart, splat(kNever));
  entry.half[1].joinPrice = select(depth >= lane + 4, behindFirst(high) - apart, splat(kNever));
  // The last lane holds all ancestors, so the lane before leads there only if it does not hold them all.
  if (entry.depth >= kLanes)
    entry.half[1].joinPrice[2] = kNever;
}

/// Decides for the children of a place whose own lane is known.
inline void EdgeAssignment::decide(const TreeView &view, int p) {
  if (!bounds_.hasOpenChild(p))
    return;
  const Place &place = view.places[p];
  const int slot = slots_[p], lane = lanes_[p];
  // A place that is like another shares its entry; the places below share the entries of their counterparts.
  const int shift = filled_[static_cast<std::size_t>(slot)] - p;
  const Entry &entry = entries_[static_cast<std::size_t>(slot)];
  if (shift == 0 && !entry.isWithChild && entry.choice(lane) == None)
    return;
  const int childLane = entry.isWithChild ? lane : std::min(lane + 1, kLanes - 1);
  for (int c = p + 1; c < place.subtreeEnd; c = view.places[c].subtreeEnd) {
    if (bounds_.edge(c) != EdgeBounds::Edge::Open)
      continue;
    slots_[c] = slots_[c + shift];
    const bool isJoined =
        takes(entry, lane, c - p, entryOf(c).joinPrice(lane), static_cast<float>(bounds_.readers(c)));
    lanes_[c] = static_cast<unsigned char>(isJoined ? childLane : 0);
    isJoined_[c] = isJoined ? 1 : 0;
  }
}

/// The i-th open place is like its next sibling, below which everything is decided. With the same joined
/// ancestors, the same choices apply below it.
void EdgeAssignment::decideLike(const TreeView &view, std::size_t i) {
  const std::vector<int> &open = bounds_.open();
  const int p = open[i], shift = view.places[p].subtreeEnd - p;
  const std::size_t end = i + static_cast<std::size_t>(bounds_.openBelow(i));
  if (lanes_[p] != lanes_[p + shift]) {
    for (; i < end; ++i)
      decide(view, open[i]);
    return;
  }
  for (++i; i < end; ++i)
    isJoined_[open[i]] = isJoined_[open[i] + shift];
}

/// Of similar neighbours only the last gets an entry: branches of a prompt, and nodes of a level, often have
/// the same tokens, readers and subtrees.
void EdgeAssignment::listEntries(const TreeView &view) {
  const std::vector<int> &open = bounds_.open();
  const std::size_t count = open.size();
  slots_.resize(view.places.size());
  lanes_.resize(view.places.size());
  entries_.resize(std::max(entries_.size(), count));
  filled_.resize(count);
  alike_.clear();
  Entry *const entries = entries_.data();
  int *const filled = filled_.data(), *const slots = slots_.data();
  std::size_t used = 0;
  for (std::size_t i = 0; i < count;) {
    const int p = open[i];
    lanes_[p] = 0;
    if (bounds_.isLikeNext(view, i)) {
      alike_.push_back(i);
      i += static_cast<std::size_t>(bounds_.openBelow(i));
      continue;
    }
    slots[p] = static_cast<int>(used);
    countAbove(view, p, entries[used]);
    filled[used++] = p;
    ++i;
  }
  filled_.resize(used);
  for (std::size_t k = alike_.size(); k-- > 0;) {
    const int p = open[alike_[k]];
    slots_[p] = slots_[view.places[p].subtreeEnd];
  }
}

void EdgeAssignment::weigh(const TreeView &view) {
  listEntries(view);
  for (std::size_t i = filled_.size(); i-- > 0;)
    fill(view, filled_[i], entries_[i]);
  for (const int p : filled_)
    decide(view, p);
  for (std::size_t k = alike_.size(); k-- > 0;)
    decideLike(view, alike_[k]);
}

void EdgeAssignment::solve(const TreeView &view, const CostModel &model, int chunkTokens) {
  prices_.set(model, chunkTokens);
  bounds_.find(view, prices_);
  bounds_.writeJoined(isJoined_);
  if (!bounds_.open().empty())
    weigh(view);
  joined_.resize(bounds_.linked().size());
  std::size_t count = 0;
  for (const int p : bounds_.linked()) {
    joined_[count] = p; // without a branch, which would be mispredicted: the next one may overwrite it
    count += isJoined_[p] != 0;
  }
  joined_.resize(count);
}

} // namespace deft::plan
