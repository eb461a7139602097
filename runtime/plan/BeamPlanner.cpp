#include "runtime/plan/BeamPlanner.h"

#include "compiler/kernels/Legality.h"
#include "runtime/plan/PagePieces.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace deft::plan {

using support::Result;
using tree::BeamStretch;
using tree::BeamTree;

Result<void> BeamPlanner::make(const BeamTree &beams, const VariantFacts &facts, const config::Config &config,
                               int blocks, Plan &plan) {
  piece_ = kernels::readsByTensorMap(config, options_.families) ? pieceOf(facts.pageSize) : 0;
  wasDirect_ = cutTiles(beams, facts, config, blocks) && countRuns(beams);
  if (!wasDirect_) {
    if (auto made = planner_.make(beams.toTree(), facts, config, blocks, plan); !made)
      return made;
    plan.generation = plan.structureGeneration = beams.generation();
    return {};
  }
  placeItems(config, facts, plan);
  // Runs that are written in reading order can be written directly to the upload buffer.
  const bool isInOrder = config.order == config::Order::FromRoot && areInPlace_;
  if (isInOrder) {
    writeRuns(beams, plan.runs.renew(runs_));
    plan.runs.cutTo(runs_);
  } else {
    plan.runs.own().resize(runs_);
    writeRuns(beams, plan.runs.own().data());
  }
  plan.generation = plan.structureGeneration = beams.generation();
  plan.callerIndex.assign(beams.order().begin(), beams.order().end());
  plan.queryPos.resize(plan.callerIndex.size());
  std::transform(beams.lengths().begin(), beams.lengths().end(), plan.queryPos.begin(),
                 [](int length) { return length - 1; });
  plan.mergeQuery.clear();
  plan.mergeBegin.assign(1, 0);
  plan.mergeSlot.clear();
  plan.partialSlots = 0;
  plan.readTokens = readTokens_;
  plan.tableTokens = tableTokens_;
  plan.partition = spec::Partition::Union;
  plan.mostRuns = plan.grownTokens = plan.strictChunk = 0;
  plan.leaves.clear();
  plan.tails.clear();
  plan.reach = facts.reach;
  plan.trimStep = facts.trimStep;
  plan.windowStarts.clear();
  plan.windowHeads.clear();
  if (!isInOrder)
    order_.apply(config, facts, plan, options_.families);
  return {};
}

/// Makes tiles of as many beams as fit, or somewhat fewer to keep the tiles of a search equal: a tile of two
/// searches would read both histories for all its rows. Returns whether the tiles keep the blocks busy.
bool BeamPlanner::cutTiles(const BeamTree &beams, const VariantFacts &facts, const config::Config &config,
                           int blocks) {
  const bool isOpen = config.partition == spec::Partition::Auto || config.partition == spec::Partition::Union;
  const int most = config::mostRows(config) / facts.ratio;
  const bool isGpu = std::all_of(config.phases.begin(), config.phases.end(), [&](const auto &phase) {
    return kernels::familyOf(phase, options_.families).device == config::DeviceKind::Gpu;
  });
  if (!isGpu || !isOpen || config.chunkTokens != 0 || options_.isInvariant || most == 0 ||
      !facts.reach.isAll())
    return false;
  tiles_.clear();
  tileOf_.resize(static_cast<std::size_t>(beams.beams()));
  for (std::size_t i = 0; i < beams.searches().size(); ++i) {
    const int begin = beams.searches()[i];
    const int end = i + 1 < beams.searches().size() ? beams.searches()[i + 1] : beams.beams();
    const int count = (end - begin + most - 1) / most;
    for (int k = 0; k < count; ++k) {
      const auto at = [&](int tile) {
        return begin + static_cast<int>(std::int64_t{end - begin} * tile / count);
      };
      const Tile tile{at(k), at(k + 1)};
      std::fill(tileOf_.begin() + tile.begin, tileOf_.begin() + tile.end, static_cast<int>(tiles_.size()));
      tiles_.push_back(tile);
    }
  }
  return std::ssize(tiles_) * facts.kvHeads >= blocks;
}

/// Calls `visit` for each run, those of a tile in reading order. The readers of most stretches are in one
/// tile, the same as those of the stretch before: that tile is kept in registers.
template <typename Visit> void BeamPlanner::forEachRun(const BeamTree &beams, Visit visit) {
  const int *const tileOf = tileOf_.data();
  Tile *const tiles = tiles_.data();
  int at = 0;
  Tile tile = tiles_.empty() ? Tile{} : tiles[at];
  for (const BeamStretch &stretch : beams.stretches()) {
    const int first = tileOf[stretch.beamBegin], last = tileOf[stretch.beamEnd - 1];
    if (first != at || last != at) {
      tiles[at] = tile;
      for (int t = first; t < last; ++t)
        visit(stretch, tiles[t]);
      tile = tiles[at = last];
    }
    visit(stretch, tile);
  }
  if (!tiles_.empty())
    tiles[at] = tile;
}

bool BeamPlanner::countRuns(const BeamTree &beams) {
  std::int64_t readTokens = 0;
  areInPlace_ = true;
  int table = 0;
  forEachRun(beams, [&](const BeamStretch &stretch, Tile &tile) {
    readTokens += stretch.beamBegin >= tile.begin ? stretch.tokens : 0; // in the first of its tiles
    table = std::max(table, stretch.location + stretch.tokens);
    if (stretch.tokens >= kGroupTokens && piece_ > 0) {
      const abi::Run run{tile.tokens, stretch.tokens, stretch.location, 0, 0, 0, 0, 0, 0};
      constexpr char kStays = 0;
      areInPlace_ = areInPlace_ && areInPlace({&run, 1}, &kStays, piece_);
    }
    ++tile.runs;
    tile.tokens += stretch.tokens;
  });
  readTokens_ = readTokens;
  tableTokens_ = table;
  std::size_t runs = 0;
  for (const Tile &tile : tiles_)
    runs += static_cast<std::size_t>(tile.runs);
  runs_ = runs;
  return runs <= TileList::kMostRuns;
}

/// Makes an item for each tile, sorted by phase, the longest first.
void BeamPlanner::placeItems(const config::Config &config, const VariantFacts &facts, Plan &plan) {
  const auto phaseOf = [&](const Tile &tile) {
    return static_cast<int>(config::phaseFor(config, (tile.end - tile.begin) * facts.ratio));
  };
  sorted_.resize(tiles_.size());
  std::iota(sorted_.begin(), sorted_.end(), 0);
  std::sort(sorted_.begin(), sorted_.end(), [&](int a, int b) {
    const Tile &one = tiles_[a], &other = tiles_[b];
    const int onePhase = phaseOf(one), otherPhase = phaseOf(other);
    return onePhase != otherPhase       ? onePhase < otherPhase
           : one.tokens != other.tokens ? one.tokens > other.tokens
                                        : a < b;
  });
  plan.items.resize(tiles_.size());
  plan.phases.assign(config.phases.size(), {});
  plan.chunkTokens = kChunkStep;
  int run = 0;
  for (Tile &tile : tiles_) {
    tile.nextRun = run;
    run += tile.runs;
  }
  for (std::size_t i = 0; i < sorted_.size(); ++i) {
    Tile &tile = tiles_[sorted_[i]];
    plan.items[i] = {tile.begin, tile.end - tile.begin, tile.nextRun, tile.runs, tile.tokens, -1, 0, 0};
    ++plan.phases[phaseOf(tile)].itemCount;
    plan.chunkTokens = std::max(plan.chunkTokens, (tile.tokens + kChunkStep - 1) / kChunkStep * kChunkStep);
    tile.tokens = 0; // of the runs written so far
  }
  for (std::size_t p = 1; p < plan.phases.size(); ++p)
    plan.phases[p].itemBegin = plan.phases[p - 1].itemBegin + plan.phases[p - 1].itemCount;
}

void BeamPlanner::writeRuns(const BeamTree &beams, abi::Run *runs) {
  forEachRun(beams, [runs](const BeamStretch &stretch, Tile &tile) {
    runs[tile.nextRun++] = {tile.tokens,
                            stretch.tokens,
                            stretch.location,
                            stretch.position,
                            stretch.depth,
                            std::max(stretch.beamBegin, tile.begin) - tile.begin,
                            std::min(stretch.beamEnd, tile.end) - tile.begin,
                            0,
                            0};
    tile.tokens += stretch.tokens;
  });
}

} // namespace deft::plan
