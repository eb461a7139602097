#include "runtime/plan/TileBounds.h"

#include "runtime/plan/Items.h"

#include <algorithm>

namespace deft::plan {

void TileBounds::set(const TileList &list, const TreeView &view, const CostModel &model) {
  model_ = &model;
  work_ = {};
  work_.readTokens = view.readTokens;
  work_.queries = view.queryCount();
  tiles_.clear();
  for (const Tile &tile : list.tiles) {
    const int limit = tile.chunkTokens;
    Whole whole{tile.tokens, limit, tile.queryCount, tile.runCount, tile.tokens, tile.isEven, 0};
    if (tile.isPath) {
      whole.unitUs = model.leastUnitUs(tile.queryCount, tile.tokens) + (tile.runCount - 1) * model.runUs();
    } else {
      const std::span runs(list.runs.data() + tile.runBegin, static_cast<std::size_t>(tile.runCount));
      const int begin = runs.front().queryBegin;
      int end = begin;
      for (const Segment &run : runs)
        end = std::max(end, run.queryEnd);
      whole.queries = end - begin;
      whole.common = 0;
      for (const Segment &run : runs) {
        if (run.queryBegin != begin || run.queryEnd != end || run.slope != 0)
          break;
        whole.common += run.tokens;
      }
      whole.unitUs = model.leastUnitUs(runs, tile.tokens);
    }
    work_.itemTokens += tile.tokens;
    tiles_.push_back(whole);
  }
}

bool TileBounds::areCutAlike(int chunkTokens, int otherChunk) const {
  return std::all_of(tiles_.begin(), tiles_.end(), [&](const Whole &tile) {
    const int least = std::min(chunkTokens, otherChunk), most = std::max(chunkTokens, otherChunk);
    return tile.limit > 0 || tile.tokens <= least || least == most ||
           (tile.isEven && (tile.tokens - 1) / least == (tile.tokens - 1) / most);
  });
}

LowerBound TileBounds::least(int chunkTokens) const {
  PlanWork work = work_;
  std::int64_t read = 0, cutSlots = 0; // queries of whole items; lower bound for cut items
  std::int64_t runs = 0;
  bool areWhole = true;
  int longest = 0;
  for (const Whole &tile : tiles_) {
    runs += tile.runs;
    const int limit = tile.limit > 0 ? (tile.limit + kChunkStep - 1) / kChunkStep * kChunkStep : chunkTokens;
    if (tile.tokens <= limit) {
      work.blockUs += tile.unitUs;
      read += tile.queries;
      if (tile.tokens >= longest) { // one of these is the first of the busiest block
        work.fullestUs = tile.tokens > longest ? tile.unitUs : std::min(work.fullestUs, tile.unitUs);
        longest = tile.tokens;
      }
      continue;
    }
    // All queries are in the items of the common tokens; of further items only the number is known.
    const int items = (tile.tokens - 1) / limit + 1;
    const int chunk = tile.isEven ? evenChunk(tile.tokens, limit) : limit;
    const int wide = tile.common > 0 ? (tile.common - 1) / chunk + 1 : 0, full = tile.common / chunk;
    // Two groups of warps may share the other tokens evenly.
    const double others = (model_->hasGroups() ? 0.5 : 1) * (tile.tokens - tile.common);
    areWhole = false;
    work.blockUs += full * model_->leastUnitUs(tile.queries, chunk) +
                    (tile.common - full * chunk) * model_->tokenUs(tile.queries) +
                    (wide - full) * (model_->startUs(tile.queries) + model_->runUs()) +
                    (items - wide) * (model_->leastItemUs(tile.queries) + model_->runUs()) +
                    std::max(0, tile.runs - items) * model_->runUs() +
                    others * model_->leastTokenUs(tile.queries);
    // Queries that see the first of several items have no complete row, so none of these items is
    // complete.
    if (wide > 0)
      cutSlots += std::int64_t{wide} * tile.queries + std::max(0, items - wide);
  }
  work.blockUs *= model_->share();
  if (!areWhole)
    work.fullestUs = 0;
  // Items that write the output share no query with other items.
  work.partialSlots = std::max<std::int64_t>(read - work.queries, 0) + cutSlots;
  work.isMerged = work.partialSlots > 0;
  return {model_->microsecondsOf(work), runs, work.isMerged};
}

} // namespace deft::plan
