#include "runtime/plan/EdgeAssignment.h"

#include <algorithm>

namespace deft::plan {
namespace {

/// More than any tree costs, and small enough that sums of it stay ordered.
constexpr float kNever = 1e30F;

bool hasReadersBelow(const Place &place) { return place.ownEnd < place.readersEnd; }

} // namespace

inline bool EdgeAssignment::takes(const Entry &entry, int lane, int child, float price, float queries) const {
  switch (entry.isGlue ? All : static_cast<Choice>(entry.choice(lane))) {
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
  entry.gluedTokens = 0;
  entry.half[0].above = Int4{};
  if (bounds_.edge(p) == EdgeBounds::Edge::Open) {
    const Entry &parent = entryOf(place.parent);
    const int tokens = view.places[place.parent].tokens;
    const Int4 low = parent.half[0].above + tokens;
    entry.depth = parent.depth + (parent.isGlue ? 0 : 1);
    entry.half[0].above = parent.isGlue ? low : beforeLast(Int4{}, low);
    if (parent.isGlue)
      entry.gluedTokens = parent.gluedTokens + tokens;
    if (entry.depth >= 4) {
      const Int4 high = parent.half[1].above + tokens;
      entry.half[1].above = parent.isGlue ? high : beforeLast(low, high);
    }
    if (entry.depth >= kLanes - 1)
      entry.half[1].above[3] = place.position - view.places[bounds_.top(p)].position;
  }
  entry.isGlue = isGlue(view, p, entry.gluedTokens);
}

/// A short node without queries of its own whose readers all come through one child.
inline bool EdgeAssignment::isGlue(const TreeView &view, int p, int gluedTokens) const {
  const Place &place = view.places[p];
  if (place.ownBegin != place.ownEnd || gluedTokens + place.tokens > kGluedTokens)
    return false;
  return onlyChild(view, p) >= 0;
}

inline void EdgeAssignment::addChildren(const TreeView &view, int p, Entry &entry, Taken &taken) {
  const Place &place = view.places[p];
  const int crossing = prices_.fewer(bounds_.readers(p));
  taken = {};
  taken.one = {splat(kNever), splat(kNever)};
  for (int c = p + 1; c < place.subtreeEnd; c = view.places[c].subtreeEnd) {
    const int count = bounds_.readers(c);
    if (count == 0)
      continue;
    if (bounds_.edge(c) == EdgeBounds::Edge::Apart) {
      for (int h = 0; h < entry.halves(); ++h)
        taken.all.half[h] = splat(kNever);
      continue;
    }
    const Entry &child = entryOf(c);
    const Float4 queries = splat(static_cast<float>(count));
    const Float4 gaining = queries * prices_.partialUs();
    for (int h = 0; h < entry.halves(); ++h) {
      const Float4 price = child.half[h].joinPrice;
      const Int4 isGain = price < gaining, isFill = price < entry.half[h].fillPrice * queries;
      taken.gain.half[h] += select(isGain, price, Float4{});
      taken.gainQueries.half[h] += select(isGain, queries, Float4{});
      taken.fill.half[h] += select(isFill, price, Float4{});
      taken.fillQueries.half[h] += select(isFill, queries, Float4{});
      taken.all.half[h] += price;
      if (count >= crossing) {
        const Int4 isLess = price < taken.one.half[h];
        taken.one.half[h] = select(isLess, price, taken.one.half[h]);
        taken.oneQueries.half[h] = select(isLess, queries, taken.oneQueries.half[h]);
        entry.half[h].one = select(isLess, splat(c - p), entry.half[h].one);
      }
    }
  }
}

/// The one through which all readers below the place come; -1: there are several.
inline int EdgeAssignment::onlyChild(const TreeView &view, int p) const {
  const Place &place = view.places[p];
  int child = p + 1;
  while (bounds_.readers(child) == 0)
    child = view.places[child].subtreeEnd;
  return view.places[child].readersEnd == place.readersEnd ? child : -1;
}

/// Of one child there is but one choice.
inline Lanes EdgeAssignment::chooseOnly(const Place &place, int child, Entry &entry, const Lanes &tokens,
                                        const IntLanes &isWhole, const Lanes &alone) {
  const Entry &below = entryOf(child);
  const int own = place.ownEnd - place.ownBegin;
  const GroupPrices::Readers ownReaders = prices_.readers(own);
  Lanes cost;
  for (int h = 0; h < entry.halves(); ++h) {
    Float4 joined = below.half[h].joinPrice;
    if (own > 0)
      joined += prices_.sameReaders(ownReaders, tokens.half[h], isWhole.half[h]);
    const Int4 isLess = joined < alone.half[h];
    cost.half[h] = select(isLess, joined, alone.half[h]);
    entry.half[h].choice = select(isLess, splat(static_cast<int>(All)), splat(static_cast<int>(None)));
  }
  return cost;
}

inline Lanes EdgeAssignment::chooseBest(const TreeView &view, int p, Entry &entry, const Lanes &tokens,
                                        const IntLanes &isWhole, const Lanes &alone) {
  const Place &place = view.places[p];
  const int most = bounds_.readers(p);
  const float share = 1 / static_cast<float>(most);
  for (int h = 0; h < entry.halves(); ++h)
    entry.half[h].fillPrice = alone.half[h] * share;
  Taken taken;
  addChildren(view, p, entry, taken);
  const Float4 queries = splat(static_cast<float>(most));
  const int own = place.ownEnd - place.ownBegin;
  const GroupPrices::Readers ownReaders = prices_.readers(own);
  Lanes cost = alone;
  for (int h = 0; h < entry.halves(); ++h) {
    Float4 &least = cost.half[h];
    Int4 best = splat(static_cast<int>(None));
    const auto take = [&](Choice choice, Float4 us) {
      const Int4 isLess = us < least;
      least = select(isLess, us, least);
      best = select(isLess, splat(static_cast<int>(choice)), best);
    };
    const Float4 length = tokens.half[h];
    const auto tryOut = [&](Choice choice, Float4 price, Float4 taken) {
      take(choice, price + prices_.otherReaders(most, queries - taken, length));
    };
    const Float4 gained = taken.gainQueries.half[h], filled = taken.fillQueries.half[h];
    if (any(gained > Float4{}))
      tryOut(Gaining, taken.gain.half[h], gained);
    if (any(filled != gained))
      tryOut(Filling, taken.fill.half[h], filled);
    if (any(taken.one.half[h] < least)) // the others cost nothing less than 0
      tryOut(One, taken.one.half[h], taken.oneQueries.half[h]);
    take(All, own > 0 ? taken.all.half[h] + prices_.sameReaders(ownReaders, length, isWhole.half[h])
                      : taken.all.half[h]);
    entry.half[h].choice = best;
  }
  return cost;
}

inline void EdgeAssignment::fill(const TreeView &view, int p, Entry &entry) {
  const Place &place = view.places[p];
  if (entry.isGlue) { // the child's costs, for its lanes count the same ancestors
    const int child = onlyChild(view, p);
    for (int h = 0; h < entry.halves(); ++h)
      entry.half[h].joinPrice = entryOf(child).half[h].joinPrice;
    return;
  }
  const bool isInner = hasReadersBelow(place);
  const int ownTokens = isInner ? place.tokens : readTokens(view, place);
  Lanes tokens, cost{};
  IntLanes isWhole;
  const GroupPrices::Readers all = prices_.readers(bounds_.readers(p));
  for (int h = 0; h < entry.halves(); ++h) {
    tokens.half[h] = toFloat(entry.half[h].above + ownTokens);
    isWhole.half[h] = entry.half[h].above == splat(place.position);
    cost.half[h] = prices_.sameReaders(all, tokens.half[h], isInner ? Int4{} : isWhole.half[h]);
  }
  if (bounds_.hasOpenChild(p)) {
    if (const int child = onlyChild(view, p); child >= 0)
      cost = chooseOnly(place, child, entry, tokens, isWhole, cost);
    else
      cost = chooseBest(view, p, entry, tokens, isWhole, cost);
  }
  const float apart = cost[0];
  const Int4 lane{1, 2, 3, 4};
  const Int4 depth = splat(entry.depth);
  const Float4 low = cost.half[0], high = cost.half[1];
  if (entry.depth < 4) [[likely]] {
    entry.half[0].joinPrice = select(depth >= lane, behindFirst(low) - apart, splat(kNever));
    return;
  }
  entry.half[0].joinPrice = select(depth >= lane, behindFirst(low, high) - apart, splat(kNever));
  entry.half[1].joinPrice = select(depth >= lane + 4, behindFirst(high) - apart, splat(kNever));
  // The last lane holds all ancestors: it is reached from the one before it only where these are as many.
  if (entry.depth >= kLanes)
    entry.half[1].joinPrice[2] = kNever;
}

/// Decides for the children of a place, whose own lane is known.
inline void EdgeAssignment::choose(const TreeView &view, int p) {
  if (!bounds_.hasOpenChild(p))
    return;
  const Place &place = view.places[p];
  const int slot = slots_[p], lane = lanes_[p];
  // The entries of a place that is like another are the other's; those below it, of the same ones there.
  const int shift = filled_[static_cast<std::size_t>(slot)] - p;
  const Entry &entry = entries_[static_cast<std::size_t>(slot)];
  if (shift == 0 && !entry.isGlue && entry.choice(lane) == None)
    return;
  const int childLane = entry.isGlue ? lane : std::min(lane + 1, kLanes - 1);
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

/// The i-th of the open places is like the sibling behind it, below which all is decided: with the same
/// ancestors, the same is done below it.
void EdgeAssignment::chooseLike(const TreeView &view, std::size_t i) {
  const std::vector<int> &open = bounds_.open();
  const int p = open[i], shift = view.places[p].subtreeEnd - p;
  const std::size_t end = i + static_cast<std::size_t>(bounds_.openBelow(i));
  if (lanes_[p] != lanes_[p + shift]) {
    for (; i < end; ++i)
      choose(view, open[i]);
    return;
  }
  for (++i; i < end; ++i)
    isJoined_[open[i]] = isJoined_[open[i] + shift];
}

/// Of neighbours alike only the last is weighed: prompts' branches and levels' nodes often have the same
/// tokens, readers and subtrees.
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
    choose(view, p);
  for (std::size_t k = alike_.size(); k-- > 0;)
    chooseLike(view, alike_[k]);
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
    joined_[count] = p; // nobody can predict which ones: others are overwritten
    count += isJoined_[p] != 0;
  }
  joined_.resize(count);
}

} // namespace deft::plan
