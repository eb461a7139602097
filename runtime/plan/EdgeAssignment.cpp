#include "runtime/plan/EdgeAssignment.h"

#include <algorithm>

namespace deft::plan {
namespace {

/// More than any tree costs, and small enough that sums of it stay ordered.
constexpr float kNever = 1e30F;

int readers(const Place &place) { return place.readersEnd - place.ownBegin; }
bool isRead(const Place &place) { return place.ownBegin < place.readersEnd; }
bool hasReadersBelow(const Place &place) { return place.ownEnd < place.readersEnd; }

/// Tokens of the node that somebody sees.
int readTokens(const TreeView &view, const Place &place) {
  if (place.segmentBegin == place.segmentEnd)
    return 0;
  const Segment &last = view.segments[place.segmentEnd - 1];
  return last.begin + last.tokens;
}

} // namespace

bool EdgeAssignment::takes(const Entry &entry, int child, float queries) const {
  const int lane = entry.lane;
  const float price = entries_[child].joinPrice[lane];
  switch (entry.isGlue ? All : static_cast<Choice>(entry.choice[lane])) {
  case None:
    return false;
  case Gaining:
    return price < prices_.partialUs() * queries;
  case Filling:
    return price < entry.fillPrice[lane] * queries;
  case One:
    return entry.one[lane] == child;
  case All:
    return true;
  }
  return false;
}

void EdgeAssignment::countAbove(const TreeView &view) {
  entries_.resize(view.places.size());
  for (int p = 0; p < view.placeCount(); ++p) {
    const Place &place = view.places[p];
    Entry &entry = entries_[p];
    entry.lane = 0;
    entry.depth = 0;
    entry.gluedTokens = 0;
    entry.above = {};
    if (place.parent >= 0) {
      const Entry &parent = entries_[place.parent];
      const int tokens = view.places[place.parent].tokens;
      const Int4 low = parent.above.half[0] + tokens, high = parent.above.half[1] + tokens;
      entry.depth = parent.depth + (parent.isGlue ? 0 : 1);
      if (parent.isGlue) {
        entry.gluedTokens = parent.gluedTokens + tokens;
        entry.above = {low, high};
      } else {
        entry.above = {Int4{0, low[0], low[1], low[2]}, Int4{low[3], high[0], high[1], high[2]}};
      }
      if (entry.depth >= kLanes - 1)
        entry.above.half[1][3] = place.position;
    }
    entry.isGlue = isGlue(view, p, entry.gluedTokens);
  }
}

/// A short node without queries of its own whose readers all come through one child.
bool EdgeAssignment::isGlue(const TreeView &view, int p, int gluedTokens) {
  const Place &place = view.places[p];
  if (place.ownBegin != place.ownEnd || !isRead(place) || gluedTokens + place.tokens > kGluedTokens)
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
  taken.one = {splat(kNever), splat(kNever)};
  for (int c = p + 1; c < place.subtreeEnd; c = view.places[c].subtreeEnd) {
    const int count = readers(view.places[c]);
    if (count == 0)
      continue;
    const Entry &child = entries_[c];
    const Float4 queries = splat(static_cast<float>(count));
    const Float4 gaining = queries * prices_.partialUs();
    taken.apart += child.apart;
    for (int h = 0; h < entry.halves(); ++h) {
      const Float4 price = child.joinPrice.half[h];
      const Int4 isGain = price < gaining, isFill = price < entry.fillPrice.half[h] * queries;
      taken.gain.half[h] += select(isGain, price, Float4{});
      taken.gainQueries.half[h] += select(isGain, queries, Float4{});
      taken.fill.half[h] += select(isFill, price, Float4{});
      taken.fillQueries.half[h] += select(isFill, queries, Float4{});
      taken.all.half[h] += price;
      if (count >= crossing) {
        const Int4 isLess = price < taken.one.half[h];
        taken.one.half[h] = select(isLess, price, taken.one.half[h]);
        taken.oneQueries.half[h] = select(isLess, queries, taken.oneQueries.half[h]);
        entry.one.half[h] = select(isLess, splat(c), entry.one.half[h]);
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
    entry.choice.half[h] = best;
    least += taken.apart;
  }
  return cost;
}

/// Leaves of one parent often have as many tokens and readers each.
bool EdgeAssignment::isLikeNextSibling(const TreeView &view, int p) {
  if (p + 1 >= view.placeCount())
    return false;
  const Place &place = view.places[p], &next = view.places[p + 1];
  return next.parent == place.parent && next.subtreeEnd == p + 2 && next.tokens == place.tokens &&
         readers(next) == readers(place) && readTokens(view, next) == readTokens(view, place);
}

void EdgeAssignment::fill(const TreeView &view, int p) {
  const Place &place = view.places[p];
  Entry &entry = entries_[p];
  if (entry.isGlue) { // the child's costs, for its lanes count the same ancestors
    int child = p + 1;
    while (!isRead(view.places[child]))
      child = view.places[child].subtreeEnd;
    entry.apart = entries_[child].apart;
    entry.joinPrice = entries_[child].joinPrice;
    return;
  }
  const int ownTokens = readTokens(view, place);
  const bool isInner = hasReadersBelow(place);
  if (!isInner && isLikeNextSibling(view, p)) {
    entry.apart = entries_[p + 1].apart;
    entry.joinPrice = entries_[p + 1].joinPrice;
    return;
  }
  Lanes tokens, cost{};
  IntLanes isWhole;
  const GroupPrices::Readers all = prices_.readers(readers(place));
  for (int h = 0; h < entry.halves(); ++h) {
    tokens.half[h] = toFloat(entry.above.half[h] + ownTokens);
    isWhole.half[h] = entry.above.half[h] == splat(place.position);
    cost.half[h] = prices_.sameReaders(all, tokens.half[h], isInner ? Int4{} : isWhole.half[h]);
  }
  if (isInner) {
    const float share = 1 / static_cast<float>(readers(place));
    for (int h = 0; h < entry.halves(); ++h)
      entry.fillPrice.half[h] = cost.half[h] * share;
    Taken taken;
    addChildren(view, p, taken);
    cost = chooseBest(place, entry, tokens, isWhole, cost, taken);
  }
  const float apart = cost[0];
  const Int4 lane{1, 2, 3, 4};
  const Float4 low = cost.half[0], high = cost.half[1];
  entry.apart = apart;
  entry.joinPrice.half[0] =
      select(splat(entry.depth) >= lane, Float4{low[1], low[2], low[3], high[0]} - apart, splat(kNever));
  entry.joinPrice.half[1] = select(splat(entry.depth) >= lane + 4,
                                   Float4{high[1], high[2], high[3], high[3]} - apart, splat(kNever));
  // The last lane holds all ancestors: it is reached from the one before it only where these are as many.
  if (entry.depth >= kLanes)
    entry.joinPrice.half[1][2] = kNever;
}

void EdgeAssignment::choose(const TreeView &view) {
  isJoined_.assign(view.places.size(), 0);
  needsOrder_ = false;
  for (int p = 0; p < view.placeCount(); ++p) {
    const Place &place = view.places[p];
    const Entry &entry = entries_[p];
    if (!hasReadersBelow(place) || (!entry.isGlue && entry.choice[entry.lane] == None))
      continue;
    bool isAfterJoined = false;
    for (int c = p + 1; c < place.subtreeEnd; c = view.places[c].subtreeEnd) {
      const int count = readers(view.places[c]);
      if (count == 0)
        continue;
      if (takes(entry, c, static_cast<float>(count))) {
        isJoined_[c] = 1;
        isAfterJoined = true;
        entries_[c].lane =
            static_cast<unsigned char>(entry.isGlue ? entry.lane : std::min(entry.lane + 1, kLanes - 1));
      } else {
        needsOrder_ |= isAfterJoined;
      }
    }
  }
}

void EdgeAssignment::solve(const TreeView &view, const CostModel &model, int chunkTokens) {
  prices_.set(model, chunkTokens);
  countAbove(view);
  for (int p = view.placeCount() - 1; p >= 0; --p)
    if (isRead(view.places[p]) && (view.places[p].parent >= 0 || hasReadersBelow(view.places[p])))
      fill(view, p);
  choose(view);
}

} // namespace deft::plan
