#include "runtime/plan/Auto.h"

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
  /// Quarters of an octave: what differs by a fifth is another class.
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
  for (double price :
       {cost.cacheGBs, cost.againGBs, cost.partialGBs, cost.blockGflops, cost.wgmmaBlockGflops, cost.stepUs,
        cost.itemUs, cost.runUs, cost.maskUs, cost.launchUs, cost.mergeUs, cost.slotUs, cost.lightStep,
        cost.lightItem, cost.keyUs, cost.turnStep, cost.mergedShare})
    hash.add(price);
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
    // The first segment's readers are all that see any of the node; where a mask hides its beginning from the
    // last of them, there are no fewer.
    const Segment &first = view.segments[static_cast<std::size_t>(place.segmentBegin)];
    const std::int64_t queries = first.queryEnd - first.queryBegin;
    counts.pathNodes += queries;
    counts.nodeTiles += (queries + queriesPerTile - 1) / queriesPerTile;
  }
  return counts;
}

LowerBound lowerBoundOf(spec::Partition partition, const ViewCounts &counts, const CostModel &model) {
  switch (partition) {
  case spec::Partition::Query:
    return {static_cast<double>(counts.pathTokens - counts.readTokens) * model.againUs(), counts.pathNodes};
  case spec::Partition::Node:
  case spec::Partition::NodeChunk:
  case spec::Partition::Cascade: {
    // A partial for each node of a query's path, but where that is one: no more of these than queries.
    const std::int64_t partials = counts.pathNodes - counts.queries;
    return {static_cast<double>(counts.nodeTiles) * model.itemUs() +
                static_cast<double>(partials) * model.partialUs(),
            counts.nodeTiles};
  }
  case spec::Partition::Flatten:
  case spec::Partition::Greedy:
  case spec::Partition::Union:
  case spec::Partition::Auto:
    break;
  }
  return {0, counts.pathNodes / model.queriesPerTile()};
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
