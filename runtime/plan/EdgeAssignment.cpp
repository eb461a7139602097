#include "runtime/plan/EdgeAssignment.h"

#include <algorithm>

namespace deft::plan {
namespace {

/// More than any tree costs, and small enough that sums of it stay ordered.
constexpr float kNever = 1e30F;

bool isRead(const Place &place) { return place.ownBegin < place.readersEnd; }

/// Tokens of the node that somebody sees.
int readTokens(const TreeView &view, const Place &place) {
  if (place.segmentBegin == place.segmentEnd)
    return 0;
  const Segment &last = view.segments[place.segmentEnd - 1];
  return last.begin + last.tokens;
}

} // namespace

void EdgeAssignment::setPrices(const CostModel &model, int chunkTokens) {
  prices_.width = model.queriesPerTile();
  prices_.inverseWidth = 1.0 / prices_.width;
  prices_.item = static_cast<float>(model.itemUs());
  prices_.again = static_cast<float>(model.againUs());
  prices_.partial = static_cast<float>(model.partialUs());
  prices_.chunk = static_cast<float>(chunkTokens);
  prices_.inverseChunk = chunkTokens > 0 ? 1.0F / prices_.chunk : 0;
  widths_.resize(static_cast<std::size_t>(prices_.width) + 1);
  widths_[0] = {};
  for (int queries = 1; queries <= prices_.width; ++queries) {
    const auto step = static_cast<float>(model.tokenStep(queries));
    widths_[static_cast<std::size_t>(queries)] = {static_cast<float>(model.stepUs(queries)), 1 / step,
                                                  (step - 0.5F) / step};
  }
}

/// Row tiles of a group: full ones, and one for the rest. Token counts are integers, so half a token of
/// slack makes a truncated product the exact number of steps.
float EdgeAssignment::groupUs(float queries, float tokens, bool isDirect) const {
  if (tokens <= 0 || queries <= 0)
    return 0;
  const int count = static_cast<int>(queries);
  const int full = static_cast<int>((count + 0.5) * prices_.inverseWidth);
  const int rest = std::clamp(count - full * prices_.width, 0, prices_.width);
  const auto stepsUs = [&](const Width &width) {
    return width.stepUs * static_cast<float>(static_cast<int>(tokens * width.inverseStep + width.slack));
  };
  const float chunks = prices_.chunk > 0 && tokens > prices_.chunk
                           ? static_cast<float>(static_cast<int>(tokens * prices_.inverseChunk + 0.9999F))
                           : 1;
  const auto tiles = static_cast<float>(full + (rest > 0));
  return static_cast<float>(full) * stepsUs(widths_.back()) +
         stepsUs(widths_[static_cast<std::size_t>(rest)]) +
         tiles * (chunks * prices_.item + tokens * prices_.again) +
         (isDirect && chunks == 1 ? 0 : chunks * queries * prices_.partial);
}

bool EdgeAssignment::takes(const Entry &entry, int lane, int child) const {
  const Entry &below = entries_[child];
  const float price = below.joinPrice[lane];
  switch (entry.isGlue ? All : static_cast<Choice>(entry.choice[lane])) {
  case None:
    return false;
  case Gaining:
    return price < prices_.partial * below.queries;
  case Filling:
    return price < entry.fillPrice[lane] * below.queries;
  case All:
    return true;
  case One:
    return entry.one[lane] == child;
  }
  return false;
}

void EdgeAssignment::countAbove(const TreeView &view) {
  entries_.resize(view.places.size());
  for (int p = 0; p < view.placeCount(); ++p) {
    const Place &place = view.places[p];
    Entry &entry = entries_[p];
    entry.queries = static_cast<float>(place.readersEnd - place.ownBegin);
    entry.own = static_cast<float>(place.ownEnd - place.ownBegin);
    entry.depth = 0;
    entry.gluedTokens = 0;
    entry.isGlue = false;
    entry.above.fill(kNever);
    entry.above[0] = 0;
    if (place.parent >= 0) {
      const Entry &parent = entries_[place.parent];
      const int parentTokens = view.places[place.parent].tokens;
      const auto tokens = static_cast<float>(parentTokens);
      entry.depth = parent.depth + (parent.isGlue ? 0 : 1);
      if (parent.isGlue) {
        entry.gluedTokens = parent.gluedTokens + parentTokens;
        for (int k = 0; k < kLanes; ++k)
          entry.above[k] = parent.above[k] + tokens;
      } else {
        for (int k = 1; k < kLanes; ++k)
          entry.above[k] = parent.above[k - 1] + tokens;
      }
      if (entry.depth >= kLanes - 1)
        entry.above[kLanes - 1] = static_cast<float>(place.position);
    }
    glue(view, p);
  }
}

/// A short node without queries of its own whose readers all come through one child.
void EdgeAssignment::glue(const TreeView &view, int p) {
  const Place &place = view.places[p];
  Entry &entry = entries_[p];
  if (place.ownBegin != place.ownEnd || place.ownBegin == place.readersEnd ||
      entry.gluedTokens + place.tokens > kGluedTokens)
    return;
  for (int c = p + 1; c < place.subtreeEnd; c = view.places[c].subtreeEnd)
    if (isRead(view.places[c])) {
      entry.isGlue = view.places[c].readersEnd == place.readersEnd;
      return;
    }
}

void EdgeAssignment::fill(const TreeView &view, int p) {
  const Place &place = view.places[p];
  Entry &entry = entries_[p];
  const auto tokens = static_cast<float>(readTokens(view, place));
  const auto position = static_cast<float>(place.position);
  Lanes cost;
  if (entry.isGlue) {
    for (int c = p + 1; c < place.subtreeEnd; c = view.places[c].subtreeEnd)
      if (isRead(view.places[c])) {
        entry.apart = entries_[c].apart;
        entry.joinPrice = entries_[c].joinPrice;
      }
    return;
  }
  if (place.subtreeEnd == p + 1 || place.ownEnd == place.readersEnd) { // no readers below
    for (int k = 0; k < kLanes; ++k)
      cost[k] = entry.above[k] < kNever
                    ? groupUs(entry.queries, tokens + entry.above[k], entry.above[k] == position)
                    : kNever;
  } else {
    Lanes alone;
    for (int k = 0; k < kLanes; ++k) {
      alone[k] = entry.above[k] < kNever ? groupUs(entry.queries, tokens + entry.above[k], false) : kNever;
      entry.fillPrice[k] = alone[k] / entry.queries;
    }
    float apart = 0;
    Lanes gain{}, gainQueries{}, fill{}, fillQueries{}, all{}, one, oneQueries{};
    one.fill(kNever);
    const int rest = static_cast<int>(entry.queries) % prices_.width;
    const auto crossing = static_cast<float>(rest == 0 ? prices_.width : rest);
    for (int c = p + 1; c < place.subtreeEnd; c = view.places[c].subtreeEnd) {
      const Entry &child = entries_[c];
      if (child.queries == 0)
        continue;
      apart += child.apart;
      const float least = prices_.partial * child.queries;
      for (int k = 0; k < kLanes; ++k) {
        const float price = child.joinPrice[k];
        const bool isGain = price < least;
        const bool isFill = price < entry.fillPrice[k] * child.queries;
        gain[k] += isGain ? price : 0;
        gainQueries[k] += isGain ? child.queries : 0;
        fill[k] += isFill ? price : 0;
        fillQueries[k] += isFill ? child.queries : 0;
        all[k] += price;
      }
      if (child.queries >= crossing)
        for (int k = 0; k < kLanes; ++k) {
          const bool isLess = child.joinPrice[k] < one[k];
          one[k] = isLess ? child.joinPrice[k] : one[k];
          oneQueries[k] = isLess ? child.queries : oneQueries[k];
          entry.one[k] = isLess ? c : entry.one[k];
        }
    }
    for (int k = 0; k < kLanes; ++k) {
      if (entry.above[k] >= kNever) {
        cost[k] = kNever;
        continue;
      }
      const float length = tokens + entry.above[k];
      const std::array<float, 5> costs = {
          alone[k],
          gain[k] + (gainQueries[k] > 0 ? groupUs(entry.queries - gainQueries[k], length, false) : alone[k]),
          fill[k] + (fillQueries[k] > 0 ? groupUs(entry.queries - fillQueries[k], length, false) : alone[k]),
          all[k] + groupUs(entry.own, length, entry.above[k] == position),
          one[k] < kNever ? one[k] + groupUs(entry.queries - oneQueries[k], length, false) : kNever};
      const auto best = std::min_element(costs.begin(), costs.end());
      entry.choice[k] = static_cast<unsigned char>(best - costs.begin());
      cost[k] = apart + *best;
    }
  }
  entry.apart = cost[0];
  const auto priceOf = [&](int lane) { return cost[lane] < kNever ? cost[lane] - cost[0] : kNever; };
  for (int k = 0; k + 2 < kLanes; ++k)
    entry.joinPrice[k] = priceOf(k + 1);
  // The last lane holds all ancestors: it is reached from the one before it only where these are as many.
  entry.joinPrice[kLanes - 2] = entry.depth == kLanes - 1 ? priceOf(kLanes - 1) : kNever;
  entry.joinPrice[kLanes - 1] = entry.depth >= kLanes ? priceOf(kLanes - 1) : kNever;
}

void EdgeAssignment::choose(const TreeView &view) {
  isJoined_.assign(view.places.size(), 0);
  state_.assign(view.places.size(), 0);
  for (int p = 0; p < view.placeCount(); ++p) {
    const Place &place = view.places[p];
    if (place.ownEnd == place.readersEnd)
      continue;
    const Entry &entry = entries_[p];
    const int k = state_[p];
    for (int c = p + 1; c < place.subtreeEnd; c = view.places[c].subtreeEnd)
      if (isRead(view.places[c]) && takes(entry, k, c)) {
        isJoined_[c] = 1;
        state_[c] = static_cast<unsigned char>(entry.isGlue ? k : std::min(k + 1, kLanes - 1));
      }
  }
}

void EdgeAssignment::solve(const TreeView &view, const CostModel &model, int chunkTokens) {
  setPrices(model, chunkTokens);
  countAbove(view);
  for (int p = view.placeCount() - 1; p >= 0; --p)
    if (isRead(view.places[p]))
      fill(view, p);
  choose(view);
}

} // namespace deft::plan
