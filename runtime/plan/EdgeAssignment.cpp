#include "runtime/plan/EdgeAssignment.h"

#include <algorithm>

namespace deft::plan {
namespace {

/// More than any tree costs, and small enough that sums of it stay ordered.
constexpr float kNever = 1e30F;

int readers(const Place &place) { return place.readersEnd - place.ownBegin; }
bool isRead(const Place &place) { return place.ownBegin < place.readersEnd; }
bool hasReadersBelow(const Place &place) { return place.ownEnd < place.readersEnd; }

} // namespace

bool EdgeAssignment::takes(const Entry &entry, int lane, int child, float price, float queries) const {
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

void EdgeAssignment::countAbove(const TreeView &view, int p) {
  const Place &place = view.places[p];
  Entry &entry = entries_[p];
  entry.depth = 0;
  entry.gluedTokens = 0;
  entry.half[0].above = Int4{};
  if (bounds_.edge(p) == EdgeBounds::Edge::Open) {
    const Entry &parent = entries_[place.parent];
    const int tokens = view.places[place.parent].tokens;
    const Int4 low = parent.half[0].above + tokens;
    entry.depth = parent.depth + (parent.isGlue ? 0 : 1);
    entry.half[0].above = parent.isGlue ? low : Int4{0, low[0], low[1], low[2]};
    if (parent.isGlue)
      entry.gluedTokens = parent.gluedTokens + tokens;
    if (entry.depth >= 4) {
      const Int4 high = parent.half[1].above + tokens;
      entry.half[1].above = parent.isGlue ? high : Int4{low[3], high[0], high[1], high[2]};
    }
    if (entry.depth >= kLanes - 1)
      entry.half[1].above[3] = place.position - view.places[bounds_.top(p)].position;
  }
  entry.isGlue = isGlue(view, p, entry.gluedTokens);
}

/// A short node without queries of its own whose readers all come through one child.
bool EdgeAssignment::isGlue(const TreeView &view, int p, int gluedTokens) {
  const Place &place = view.places[p];
  if (place.ownBegin != place.ownEnd || gluedTokens + place.tokens > kGluedTokens)
    return false;
  int child = p + 1;
  while (!isRead(view.places[child]))
    child = view.places[child].subtreeEnd;
  return view.places[child].readersEnd == place.readersEnd;
}

void EdgeAssignment::addChildren(const TreeView &view, int p, Taken &taken) {
  const Place &place = view.places[p];
  Entry &entry = entries_[p];
  const int rest = readers(place) % prices_.width();
  const int crossing = rest == 0 ? prices_.width() : rest;
  for (int h = 0; h < entry.halves(); ++h) {
    for (Lanes *lanes :
         {&taken.gain, &taken.gainQueries, &taken.fill, &taken.fillQueries, &taken.oneQueries, &taken.all})
      lanes->half[h] = Float4{};
    taken.one.half[h] = splat(kNever);
  }
  for (int c = p + 1; c < place.subtreeEnd; c = view.places[c].subtreeEnd) {
    const int count = readers(view.places[c]);
    if (count == 0)
      continue;
    if (bounds_.edge(c) == EdgeBounds::Edge::Apart) {
      for (int h = 0; h < entry.halves(); ++h)
        taken.all.half[h] = splat(kNever);
      continue;
    }
    const Entry &child = entries_[entries_[c].like];
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

Lanes EdgeAssignment::chooseBest(const Place &place, Entry &entry, const Lanes &tokens,
                                 const IntLanes &isWhole, const Lanes &alone, const Taken &taken) const {
  const Float4 queries = splat(static_cast<float>(readers(place)));
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
      take(choice, price + prices_.otherReaders(queries - taken, length));
    };
    const Float4 gained = taken.gainQueries.half[h], filled = taken.fillQueries.half[h];
    if (any(gained > Float4{}))
      tryOut(Gaining, taken.gain.half[h], gained);
    if (any(filled != gained))
      tryOut(Filling, taken.fill.half[h], filled);
    if (any(taken.one.half[h] < splat(kNever)))
      tryOut(One, taken.one.half[h], taken.oneQueries.half[h]);
    take(All, own > 0 ? taken.all.half[h] + prices_.sameReaders(ownReaders, length, isWhole.half[h])
                      : taken.all.half[h]);
    entry.half[h].choice = best;
  }
  return cost;
}

/// Prompts' branches and levels' nodes often have the same tokens, readers and subtrees.
bool EdgeAssignment::isLikeNext(const TreeView &view, int p) const {
  const Place &place = view.places[p];
  const int next = place.subtreeEnd;
  return next < view.placeCount() && view.places[next].parent == place.parent &&
         bounds_.shape(next) == bounds_.shape(p) && view.places[next].subtreeEnd - next == next - p &&
         bounds_.edge(p) == EdgeBounds::Edge::Open && bounds_.edge(next) == EdgeBounds::Edge::Open;
}

void EdgeAssignment::fill(const TreeView &view, int p) {
  const Place &place = view.places[p];
  Entry &entry = entries_[p];
  if (entry.like != p) {
    entry.like = entries_[entry.like].like;
    return;
  }
  if (entry.isGlue) { // the child's costs, for its lanes count the same ancestors
    int child = p + 1;
    while (!isRead(view.places[child]))
      child = view.places[child].subtreeEnd;
    for (int h = 0; h < entry.halves(); ++h)
      entry.half[h].joinPrice = entries_[entries_[child].like].half[h].joinPrice;
    return;
  }
  const int ownTokens = readTokens(view, place);
  const bool isInner = hasReadersBelow(place);
  Lanes tokens, cost{};
  IntLanes isWhole;
  const GroupPrices::Readers all = prices_.readers(readers(place));
  for (int h = 0; h < entry.halves(); ++h) {
    tokens.half[h] = toFloat(entry.half[h].above + ownTokens);
    isWhole.half[h] = entry.half[h].above == splat(place.position);
    cost.half[h] = prices_.sameReaders(all, tokens.half[h], isInner ? Int4{} : isWhole.half[h]);
  }
  if (bounds_.hasOpenChild(p)) {
    const float share = 1 / static_cast<float>(readers(place));
    for (int h = 0; h < entry.halves(); ++h)
      entry.half[h].fillPrice = cost.half[h] * share;
    Taken taken;
    addChildren(view, p, taken);
    cost = chooseBest(place, entry, tokens, isWhole, cost, taken);
  }
  const float apart = cost[0];
  const Int4 lane{1, 2, 3, 4};
  const Float4 low = cost.half[0], high = cost.half[1];
  entry.half[0].joinPrice =
      select(splat(entry.depth) >= lane, Float4{low[1], low[2], low[3], high[0]} - apart, splat(kNever));
  if (entry.depth < 4)
    return;
  entry.half[1].joinPrice = select(splat(entry.depth) >= lane + 4,
                                   Float4{high[1], high[2], high[3], high[3]} - apart, splat(kNever));
  // The last lane holds all ancestors: it is reached from the one before it only where these are as many.
  if (entry.depth >= kLanes)
    entry.half[1].joinPrice[2] = kNever;
}

void EdgeAssignment::choose(const TreeView &view, int p) {
  if (!bounds_.hasOpenChild(p))
    return;
  const Place &place = view.places[p];
  // The entries of a place that is like another are the other's; those below it, of the same ones there.
  const int lane = entries_[p].lane, shift = entries_[p].like - p;
  const Entry &entry = entries_[entries_[p].like];
  if (shift == 0 && !entry.isGlue && entry.choice(lane) == None)
    return;
  const int childLane = entry.isGlue ? lane : std::min(lane + 1, kLanes - 1);
  for (int c = p + 1; c < place.subtreeEnd; c = view.places[c].subtreeEnd) {
    const int count = readers(view.places[c]);
    if (count == 0)
      continue;
    const int like = entries_[c + shift].like;
    const bool isJoined =
        bounds_.edge(c) == EdgeBounds::Edge::Open &&
        takes(entry, lane, c - p, entries_[like].joinPrice(lane), static_cast<float>(count));
    entries_[c].like = like;
    entries_[c].lane = static_cast<unsigned char>(isJoined ? childLane : 0);
    isJoined_[c] = isJoined ? 1 : 0;
  }
}

void EdgeAssignment::solve(const TreeView &view, const CostModel &model, int chunkTokens) {
  prices_.set(model, chunkTokens);
  bounds_.find(view, prices_);
  bounds_.writeJoined(isJoined_);
  entries_.resize(view.places.size());
  filled_.clear();
  int done = 0;
  for (const int p : bounds_.open()) {
    entries_[p].like = p;
    entries_[p].lane = 0;
    if (p < done)
      continue; // below a place that is like another
    filled_.push_back(p);
    if (isLikeNext(view, p))
      entries_[p].like = done = view.places[p].subtreeEnd;
    else
      countAbove(view, p);
  }
  for (std::size_t i = filled_.size(); i-- > 0;)
    fill(view, filled_[i]);
  for (const int p : bounds_.open())
    choose(view, p);
}

} // namespace deft::plan
