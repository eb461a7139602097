#include "runtime/plan/EdgeBounds.h"

#include <algorithm>

namespace deft::plan {
namespace {

int readers(const Place &place) { return place.readersEnd - place.ownBegin; }
bool hasReadersBelow(const Place &place) { return place.ownEnd < place.readersEnd; }

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
  return hash ^ hash >> 32;
}
std::uint64_t pair(int high, int low) {
  return static_cast<std::uint64_t>(high) << 32 | static_cast<std::uint32_t>(low);
}

} // namespace

void EdgeBounds::find(const TreeView &view, const GroupPrices &prices) {
  const std::size_t count = view.places.size();
  edges_.assign(count, Edge::Apart);
  hasOpenChild_.assign(count, 0);
  regions_.resize(count);
  for (int p = 0; p < view.placeCount(); ++p)
    if (hasReadersBelow(view.places[static_cast<std::size_t>(p)]))
      linkChildren(view, prices, p);
  linked_.resize(count);
  std::size_t linked = 0;
  for (std::size_t p = 0; p < count; ++p) {
    linked_[linked] = static_cast<int>(p);
    linked += edges_[p] == Edge::Apart ? 0 : 1;
  }
  linked_.resize(linked);
  open_.clear();
  if (linked == 0)
    return;
  findDepths(view);
  divide(view, prices.shortTokens());
  open_.resize(count);
  std::size_t open = 0;
  for (std::size_t p = 0; p < count; ++p) {
    open_[open] = static_cast<int>(p);
    open += edges_[p] == Edge::Open || hasOpenChild_[p] != 0 ? 1 : 0;
  }
  open_.resize(open);
  findShapes(view);
}

/// Which children may be joined.
void EdgeBounds::linkChildren(const TreeView &view, const GroupPrices &prices, int p) {
  const Place *const places = view.places.data();
  const Place &place = places[p];
  Edge *const edges = edges_.data();
  const int all = readers(place), own = place.ownEnd - place.ownBegin;
  const auto length = static_cast<float>(place.tokens);
  const float startUs = prices.startUs(place.tokens), partialsUs = prices.partialsUs(place.tokens);
  const GroupPrices::Bounds together = prices.bounds(all), ownBounds = prices.bounds(own);
  float tokenUs = ownBounds.tokenUs, stepUs = together.stepUs;
  for (int c = p + 1; c < place.subtreeEnd; c = places[c].subtreeEnd) {
    const GroupPrices::Bounds child = prices.bounds(readers(places[c]));
    tokenUs += child.tokenUs;
    stepUs += child.stepUs;
  }
  const bool mayAllJoin = (tokenUs - together.tokenUs) * length <=
                          2 * partialsUs * static_cast<float>(all) + stepUs + together.tiles * startUs;
  if (mayAllJoin) {
    for (int c = p + 1; c < place.subtreeEnd; c = places[c].subtreeEnd)
      edges[c] = places[c].ownBegin < places[c].readersEnd ? Edge::Open : Edge::Apart;
    return;
  }
  const float share = 1 / static_cast<float>(all);
  for (int c = p + 1; c < place.subtreeEnd; c = places[c].subtreeEnd) {
    const int queries = readers(places[c]);
    const GroupPrices::Bounds child = prices.bounds(queries), rest = prices.bounds(all - queries);
    // What the node's group is relieved of: by these readers alone, or at the rate of all.
    const auto count = static_cast<float>(queries);
    const float part = count * share;
    const float token = std::max(together.tokenUs - rest.tokenUs, together.tokenUs * part);
    const float tiles = std::max(together.tiles - rest.tiles, together.tiles * part);
    const bool mayJoin =
        (child.tokenUs - token) * length <= partialsUs * count + child.stepUs + tiles * startUs;
    // Nobody can predict it: no branch.
    edges[c] = mayJoin && queries > 0 ? Edge::Open : Edge::Apart;
  }
}

/// How far down regions read, from the leaves up.
void EdgeBounds::findDepths(const TreeView &view) {
  constexpr Region kNoRegion{0, 0, -1, false, 0};
  const Place *const places = view.places.data();
  Region *const regions = regions_.data();
  for (const int p : linked_) {
    regions[p] = kNoRegion;
    regions[places[p].parent] = kNoRegion;
  }
  for (std::size_t i = linked_.size(); i-- > 0;) {
    const Place &place = places[linked_[i]];
    Region &region = regions[linked_[i]], &parent = regions[place.parent];
    region.readTokens = readTokens(view, place);
    region.deepest = std::max(region.deepest, place.position + region.readTokens);
    parent.deepest = std::max(parent.deepest, region.deepest);
  }
}

/// Only what is weighed is compared.
void EdgeBounds::findShapes(const TreeView &view) {
  const Place *const places = view.places.data();
  Region *const regions = regions_.data();
  for (std::size_t i = open_.size(); i-- > 0;) {
    const int p = open_[i];
    if (edges_[static_cast<std::size_t>(p)] != Edge::Open)
      continue;
    const Place &place = places[p];
    Region &region = regions[p];
    region.shape = mix(region.shape + pair(region.readTokens, place.tokens) * 0xd6e8feb86659fd93ULL,
                       pair(place.ownEnd - place.ownBegin, readers(place)));
    regions[place.parent].shape += region.shape * (2 * static_cast<std::uint64_t>(p - place.parent) + 1);
  }
}

/// Regions begin where a place apart has a child that is not; short ones are joined.
void EdgeBounds::divide(const TreeView &view, int shortTokens) {
  for (const int p : linked_) {
    const int above = view.places[static_cast<std::size_t>(p)].parent;
    Region &region = regions_[static_cast<std::size_t>(p)],
           &parent = regions_[static_cast<std::size_t>(above)];
    if (parent.top < 0) {
      parent.top = above;
      parent.isShort = parent.deepest - view.places[static_cast<std::size_t>(above)].position <= shortTokens;
    }
    region.top = parent.top;
    region.isShort = parent.isShort;
    if (region.isShort)
      edges_[static_cast<std::size_t>(p)] = Edge::Joined;
    else
      hasOpenChild_[static_cast<std::size_t>(above)] = 1;
  }
}

} // namespace deft::plan
