#include "runtime/plan/EdgeBounds.h"

#include <algorithm>

namespace deft::plan {
namespace {

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
  edges_.resize(count);
  hasOpenChild_.assign(count, 0);
  for (std::vector<int> *values : {&readers_, &tops_, &deepest_, &linked_, &open_})
    values->resize(count);
  sums_.resize(count);
  above_.resize(count);
  shapes_.resize(count);
  sumChildren(view, prices);
  link(view, prices);
  divide(view, prices.shortTokens());
  if (hasShapes_)
    findShapes(view);
}

void EdgeBounds::sumChildren(const TreeView &view, const GroupPrices &prices) {
  const Place *const places = view.places.data();
  const int count = view.placeCount();
  int *const readers = readers_.data();
  Sums *const sums = sums_.data();
  Sums sum{0, 0}; // of the current parent: neighbours often have the same one
  int parent = -1;
  for (int p = 0; p < count; ++p) {
    const Place &place = places[p];
    const int all = place.readersEnd - place.ownBegin;
    const GroupPrices::Bounds bounds = prices.bounds(all);
    readers[p] = all;
    if (place.parent != parent) {
      if (parent >= 0)
        sums[parent] = sum;
      parent = place.parent;
      if (parent >= 0)
        sum = sums[parent];
    }
    sum.tokenUs += bounds.tokenUs;
    sum.stepUs += bounds.stepUs;
    sums[p] = {0, 0};
  }
  if (parent >= 0)
    sums[parent] = sum;
}

/// Finds the places that may join their parents. A region begins at a place apart whose child is not apart.
void EdgeBounds::link(const TreeView &view, const GroupPrices &prices) {
  const Place *const places = view.places.data();
  const int *const readers = readers_.data();
  Edge *const edges = edges_.data();
  int *const linked = linked_.data(), *const tops = tops_.data(), *const deepest = deepest_.data();
  Above *const aboves = above_.data();
  std::size_t links = 0;
  const int count = view.placeCount();
  int parent = -1, queries = 0; // siblings with the same number of readers have the same result
  bool mayJoin = false;
  for (int p = 0; p < count; ++p) {
    const Place &place = places[p];
    if (place.parent != parent || readers[p] != queries) {
      parent = place.parent;
      queries = readers[p];
      mayJoin = parent >= 0 && queries > 0 && mayJoinTo(aboves[parent], prices, queries);
    }
    edges[p] = mayJoin ? Edge::Open : Edge::Apart;
    tops[p] = p;
    deepest[p] = 0;
    if (mayJoin) {
      const int top = tops[p] = tops[parent];
      deepest[top] = std::max(deepest[top], place.position + place.tokens);
      linked[links++] = p;
    }
    if (place.ownEnd == place.readersEnd)
      continue;
    const GroupPrices::Bounds together = prices.bounds(queries);
    const auto length = static_cast<float>(place.tokens);
    // Rows may be complete if a group reads everything from a root on.
    const bool mayBeWhole = places[tops[p]].parent < 0;
    const float startUs = prices.startUs(place.tokens);
    const float partialsUs = prices.partialsUs(place.tokens, mayBeWhole);
    const Sums &children = sums_[static_cast<std::size_t>(p)];
    const float apartUs = children.tokenUs + prices.bounds(place.ownEnd - place.ownBegin).tokenUs;
    Above &above = aboves[p];
    above.mayAllJoin = (apartUs - together.tokenUs) * length <= partialsUs * static_cast<float>(queries) +
                                                                    children.stepUs + together.stepUs +
                                                                    together.tiles * startUs;
    if (!above.mayAllJoin)
      above = {length,         together.tokenUs,
               together.tiles, startUs,
               partialsUs,     1 / static_cast<float>(queries),
               queries,        false};
  }
  linked_.resize(links);
}

inline bool EdgeBounds::mayJoinTo(const Above &above, const GroupPrices &prices, int queries) {
  if (above.mayAllJoin)
    return true;
  const GroupPrices::Bounds alone = prices.bounds(queries), rest = prices.bounds(above.readers - queries);
  // The savings of the parent's group when these readers leave it: at their own rate, or at the average rate.
  // Some readers stay, or all would join: if there is one row tile, it stays, with at least one reader.
  const auto number = static_cast<float>(queries);
  const float part = number * above.share;
  float token = std::max(above.tokenUs - rest.tokenUs, above.tokenUs * part);
  float tiles = std::max(above.tiles - rest.tiles, above.tiles * part);
  if (above.readers <= prices.width()) {
    token = std::min(token, above.tokenUs - prices.bounds(1).tokenUs);
    tiles = 0;
  }
  return (alone.tokenUs - token) * above.tokens <=
         above.partialsUs * number + alone.stepUs + tiles * above.startUs;
}

/// Joins all regions that are short.
void EdgeBounds::divide(const TreeView &view, int shortTokens) {
  const Place *const places = view.places.data();
  Edge *const edges = edges_.data();
  char *const hasOpenChild = hasOpenChild_.data();
  const int *const tops = tops_.data(), *const deepest = deepest_.data();
  int *const open = open_.data();
  std::size_t opened = 0;
  // Comparing subtrees pays only if many places might have a similar neighbour.
  constexpr std::size_t kPaysFrom = 8;
  const std::size_t enough = linked_.size() / kPaysFrom + 1;
  std::size_t alike = 0;
  for (const int p : linked_) {
    const Place &place = places[p];
    const int top = tops[p];
    if (deepest[top] - places[top].position <= shortTokens) {
      edges[p] = Edge::Joined;
      continue;
    }
    if (place.parent == top && hasOpenChild[top] == 0)
      open[opened++] = top;
    hasOpenChild[place.parent] = 1;
    open[opened++] = p;
    const int next = place.subtreeEnd;
    if (alike < enough)
      alike += next < view.placeCount() && places[next].parent == place.parent &&
               places[next].tokens == place.tokens && readers(next) == readers(p);
  }
  open_.resize(opened);
  hasShapes_ = opened > 0 && alike == enough;
}

/// Compares only places that need a decision.
void EdgeBounds::findShapes(const TreeView &view) {
  const Place *const places = view.places.data();
  Shape *const shapes = shapes_.data();
  for (const int p : open_)
    shapes[p] = {};
  for (std::size_t i = open_.size(); i-- > 0;) {
    const int p = open_[i];
    if (edge(p) != Edge::Open)
      continue;
    const Place &place = places[p];
    Shape &shape = shapes[p], &parent = shapes[place.parent];
    shape.hash = mix(shape.hash + pair(readTokens(view, place), place.tokens) * 0xd6e8feb86659fd93ULL,
                     pair(place.ownEnd - place.ownBegin, readers(p)));
    ++shape.size;
    parent.hash += shape.hash * (2 * static_cast<std::uint64_t>(p - place.parent) + 1);
    parent.size += shape.size;
  }
}

bool EdgeBounds::hasShapeOfNext(const TreeView &view, std::size_t i) const {
  const int p = open_[i];
  const Shape &shape = shapes_[static_cast<std::size_t>(p)];
  const std::size_t j = i + static_cast<std::size_t>(shape.size);
  if (edge(p) != Edge::Open || j >= open_.size())
    return false;
  const Place &place = view.places[static_cast<std::size_t>(p)];
  const int next = open_[j];
  if (next != place.subtreeEnd || edge(next) != Edge::Open)
    return false;
  const Shape &other = shapes_[static_cast<std::size_t>(next)];
  const Place &nextPlace = view.places[static_cast<std::size_t>(next)];
  const std::size_t after = j + static_cast<std::size_t>(other.size);
  return shape.hash == other.hash && nextPlace.parent == place.parent &&
         nextPlace.subtreeEnd - next == next - p &&
         (after >= open_.size() || open_[after] < next || open_[after] >= nextPlace.subtreeEnd);
}

} // namespace deft::plan
