#include "runtime/plan/Auto.h"

#include "compiler/config/PriceNames.h"
#include "runtime/plan/Slope.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace deft::plan {
namespace {

/// FNV-1a over 64-bit words.
class KeyHash {
public:
  void add(std::uint64_t word) { hash_ = (hash_ ^ word) * 0x100000001b3ULL; }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  void add(int value) { add(static_cast<std::uint64_t>(static_cast<std::uint32_t>(value))); }
  /// Quarters of an octave: sizes that differ by a fifth are in different classes.
  void addSize(double value) { add(static_cast<int>(4 * std::log2(value + 1))); }
  std::uint64_t value() const { return hash_; }

private:
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

} // namespace

std::uint64_t classOf(const TreeView &view, const VariantFacts &facts, const config::Config &config,
                      int blocks) {
  KeyHash hash;
  hash.addSize(view.placeCount());
  hash.addSize(view.leafCount());
  hash.addSize(view.levels);
  hash.addSize(view.queryCount());
  hash.addSize(static_cast<double>(view.readTokens));
  hash.addSize(static_cast<double>(view.pathTokens));
  hash.add(view.isClipped ? 1 : 0);
  hash.add(facts.makesKeys ? 1 : 0);
  const spec::Tensors &tensors = facts.tensors;
  for (int fact : {facts.ratio, facts.kvHeads, tensors.cacheBytes(), tensors.pairFlops(),
                   tensors.q.rowBytes(), tensors.out.rowBytes(), blocks, config.chunkTokens})
    hash.add(fact);
  for (const config::PhaseConfig &phase : config.phases)
    for (int number : {phase.rowsAbove, static_cast<int>(phase.family), phase.tileQ, phase.tileKv})
      hash.add(number);
  const config::CostCoefficients &cost = config.cost;
  for (const config::PriceName &price : config::priceNames())
    hash.add(cost.*price.member);
  hash.add(cost.rowStep);
  hash.add(cost.tokenStep);
  return hash.value();
}

ViewCounts countsOf(const TreeView &view, int queriesPerTile) {
  ViewCounts counts;
  for (const Segment &segment : view.segments) {
    counts.readTokens += segment.tokens;
    counts.pathTokens += pairsOf(segment);
  }
  counts.queries = view.queryCount();
  for (const Place &place : view.places) {
    if (place.segmentBegin == place.segmentEnd)
      continue;
    // The readers of the first segment are all queries that see any of the node. A mask that hides its
    // beginning from the last readers does not change that.
    const Segment &first = view.segments[static_cast<std::size_t>(place.segmentBegin)];
    const std::int64_t queries = first.queryEnd - first.queryBegin;
    counts.pathNodes += queries;
    counts.nodeTiles += queries <= queriesPerTile ? 1 : (queries + queriesPerTile - 1) / queriesPerTile;
  }
  return counts;
}

namespace {

/// The queries of nodes with nothing above them, and queries that see nothing of their node. All other
/// queries read at least two nodes.
std::int64_t mostOfOneNode(const TreeView &view) {
  if (view.isClipped)
    return view.queryCount();
  std::int64_t queries = 0;
  for (const Place &place : view.places) {
    if (place.position == 0)
      queries += place.ownEnd - place.ownBegin;
    else // queries that see least come first
      for (int q = place.ownBegin; q < place.ownEnd && view.seen(place, q) <= 0; ++q)
        ++queries;
  }
  return queries;
}

/// Items of at most so many tokens: a query that sees more has several partials.
void countFlat(const TreeView &view, int chunkTokens, LeastWork &least) {
  const double perToken = 1.0 / chunkTokens;
  for (const int position : view.isClipped ? view.clippedPos : view.queryPos) {
    // The half token keeps multiples of the chunk exact.
    least.flatPartials += position < chunkTokens ? 0 : 1 + static_cast<int>((position + 0.5) * perToken);
    least.queryItems += position >= 0;
  }
  least.flatItems = least.counts.readTokens / chunkTokens;
}

} // namespace

LeastWork leastWorkOf(const TreeView &view, const CostModel &model, int flatChunk) {
  const int width = model.queriesPerTile();
  LeastWork least{.counts = countsOf(view, width)};
  least.nodePartials = std::max<std::int64_t>(least.counts.pathNodes - mostOfOneNode(view), 0);
  countFlat(view, flatChunk, least);
  const auto tilesUs = [&](int queries, int tokens) { // if all of them see all tokens
    if (queries <= width)                             // most; a division takes as long as all the rest
      return model.leastUnitUs(queries, tokens);
    const int full = queries / width, rest = queries % width;
    return full * model.leastUnitUs(width, tokens) + (rest > 0 ? model.leastUnitUs(rest, tokens) : 0);
  };
  double narrowUs = 0;
  int before = -1; // neighbouring segments often have the same number of readers
  std::int64_t tiles = 0;
  for (std::size_t s = 0; s < view.segments.size(); ++s) {
    const Segment &segment = view.segments[s];
    const int readers = segment.queryEnd - segment.queryBegin;
    if (segment.slope != 0) {
      const double us = std::max(static_cast<double>(pairsOf(segment)) * model.leastPairUs(),
                                 segment.tokens * model.leastCoverUs(1));
      least.tileTokens += segment.tokens;
      least.coverUs += us;
      least.nodeUs += us;
      continue;
    }
    if (readers != before) {
      before = readers;
      tiles = (readers + width - 1) / width;
      narrowUs = model.leastCoverUs(readers);
    }
    least.tileTokens += tiles * segment.tokens;
    least.coverUs += segment.tokens * narrowUs;
    // If all readers of a node see all of it, every tile is known.
    const Place &place = view.places[static_cast<std::size_t>(segment.place)];
    if (place.segmentEnd - place.segmentBegin != 1) {
      least.nodeUs += segment.tokens * narrowUs;
      continue;
    }
    const double us = tilesUs(readers, segment.tokens);
    least.nodeUs += us;
    if (place.ownEnd != place.readersEnd)
      continue;
    least.leafUs += us;
    if (place.position > 0 && !view.isClipped)
      least.aboveUs += std::min((tilesUs(readers, place.position + segment.tokens) - us) * model.share(),
                                readers * 2 * model.partialUs());
  }
  return least;
}

LowerBound lowerBoundOf(spec::Partition partition, const LeastWork &least, const CostModel &model) {
  const ViewCounts &counts = least.counts;
  PlanWork work{.itemTokens = static_cast<double>(least.tileTokens),
                .readTokens = counts.readTokens,
                .queries = static_cast<int>(counts.queries),
                .blockUs = least.coverUs * model.share()};
  std::int64_t runs = counts.pathNodes / model.queriesPerTile();
  double aboveUs = 0;
  switch (partition) {
  case spec::Partition::Query:
    work.itemTokens = static_cast<double>(counts.pathTokens);
    work.blockUs = std::max(work.blockUs,
                            (work.itemTokens * model.leastTokenUs(1) +
                             static_cast<double>(least.queryItems) * (model.leastItemUs(1) + model.runUs())) *
                                model.share());
    runs = counts.pathNodes;
    break;
  case spec::Partition::Node:
  case spec::Partition::NodeChunk:
  case spec::Partition::Cascade:
    // One partial for each node of a query's path, except if there is only one node.
    work.partialSlots = least.nodePartials;
    work.isMerged = least.nodePartials > 0;
    work.blockUs = std::max(work.blockUs, least.nodeUs * model.share());
    runs = counts.nodeTiles;
    break;
  case spec::Partition::Flatten:
    work.partialSlots = least.flatPartials;
    work.isMerged = least.flatPartials > 0;
    work.blockUs += static_cast<double>(least.flatItems) *
                    (model.leastItemUs(model.queriesPerTile()) + model.runUs()) * model.share();
    break;
  case spec::Partition::Greedy: // a leaf may join its parent, but no other node reads the leaf
    if (const double leafUs = least.leafUs * model.share(); leafUs + least.aboveUs > work.blockUs) {
      work.blockUs = leafUs;
      aboveUs = least.aboveUs;
    }
    break;
  case spec::Partition::Union:
  case spec::Partition::Auto:
    break;
  }
  return {model.microsecondsOf(work) + aboveUs, runs, work.isMerged};
}

ChoiceOfClass *AutoMemory::find(std::uint64_t key) {
  const std::size_t used = std::min(count_, entries_.size());
  for (std::size_t i = 0; i < used; ++i)
    if (entries_[i].key == key)
      return &entries_[i].choice;
  return nullptr;
}

ChoiceOfClass &AutoMemory::remember(std::uint64_t key, const Choice &choice) {
  Entry &oldest = entries_[count_++ % entries_.size()];
  oldest = {key, {choice}};
  return oldest.choice;
}

} // namespace deft::plan
