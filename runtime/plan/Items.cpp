#include "runtime/plan/Items.h"

#include <algorithm>
#include <string>

namespace deft::plan {

namespace {

int divideUp(int a, int b) { return (a - 1) / b + 1; }
int roundUp(int a, int step) { return divideUp(a, step) * step; }

/// Makes room for so many values: the size goes ahead of what is used, so that appending is a store.
template <typename Value> void grow(std::vector<Value> &values, std::size_t needed) {
  if (values.size() < needed)
    values.resize(std::max(needed, 2 * values.size()));
}

} // namespace

[[gnu::noinline]] void ItemCutter::growAll(Plan &plan, std::size_t items, std::size_t runs,
                                           std::size_t tails) {
  grow(plan.items, items);
  grow(plan.runs, runs);
  grow(plan.tails, tails);
}

/// Room for so many more items and runs; any run may be a leaf's last.
inline void ItemCutter::makeRoom(Plan &plan, int items, int runs) const {
  const auto neededItems = static_cast<std::size_t>(itemCount_ + items);
  const auto neededRuns = static_cast<std::size_t>(runCount_ + runs);
  const auto neededTails = static_cast<std::size_t>(tailCount_ + runs);
  if (neededItems > plan.items.size() || neededRuns > plan.runs.size() || neededTails > plan.tails.size())
      [[unlikely]]
    growAll(plan, neededItems, neededRuns, neededTails);
}

/// A tile of one run that is one item: what most nodes are.
inline void ItemCutter::takeSegment(const TreeView &view, const Segment &segment, Plan &plan) {
  makeRoom(plan, 1, 1);
  const auto item = static_cast<std::size_t>(itemCount_), run = static_cast<std::size_t>(runCount_);
  const auto tail = static_cast<std::size_t>(tailCount_);
  const Place &place = view.places[static_cast<std::size_t>(segment.place)];
  const int queries = segment.queryEnd - segment.queryBegin;
  plan.runs[run] = {0,
                    segment.tokens,
                    place.location + segment.begin,
                    place.position + segment.begin,
                    place.depth,
                    0,
                    queries,
                    0};
  plan.items[item] = {segment.queryBegin, queries, runCount_, 1, segment.tokens, 0, 0, 0};
  if (place.leaf >= 0 && segment.begin + segment.tokens == place.tokens) {
    plan.tails[tail] = {place.leaf, itemCount_, runCount_};
    ++tailCount_;
  }
  addReaders({itemCount_, segment.queryBegin, segment.queryEnd}, true);
  ++runCount_;
  ++itemCount_;
}

/// A tile of one query that is one item. Only the last run of a path can end a leaf.
inline void ItemCutter::takePath(const TreeView &view, const TileList &list, const Tile &tile, Plan &plan) {
  makeRoom(plan, 1, tile.runCount);
  const Segment *segment = list.runs.data() + tile.runBegin;
  const Place *const places = view.places.data();
  abi::Run *run = plan.runs.data() + runCount_;
  int tokens = 0;
  for (const Segment *end = segment + tile.runCount; segment != end; ++segment, ++run) {
    const Place &place = places[segment->place];
    run->begin = tokens;
    run->tokens = segment->tokens;
    run->location = place.location + segment->begin;
    run->position = place.position + segment->begin;
    run->depth = place.depth;
    run->queryBegin = 0;
    run->queryEnd = 1;
    tokens += segment->tokens;
  }
  const Segment &last = segment[-1];
  runCount_ += tile.runCount;
  const Place &own = places[last.place];
  if (own.leaf >= 0 && last.begin + last.tokens == own.tokens)
    plan.tails[static_cast<std::size_t>(tailCount_++)] = {own.leaf, itemCount_, runCount_ - 1};
  plan.items[static_cast<std::size_t>(itemCount_)] = {
      tile.queryBegin, 1, runCount_ - tile.runCount, tile.runCount, tokens, 0, 0, 0};
  addReaders({itemCount_++, tile.queryBegin, tile.queryBegin + 1}, true);
}

support::Result<void> ItemCutter::cut(const TreeView &view, const TileList &list, int chunkTokens,
                                      bool mayWriteOutput, Plan &plan) {
  itemCount_ = runCount_ = tailCount_ = 0;
  parts_.clear();
  partials_.assign(static_cast<std::size_t>(view.queryCount()) + 1, 0);
  for (const Tile &tile : list.tiles) {
    const int limit = tile.chunkTokens > 0 ? roundUp(tile.chunkTokens, kChunkStep) : chunkTokens;
    if (tile.tokens <= limit && tile.runCount == 1)
      takeSegment(view, list.runs[static_cast<std::size_t>(tile.runBegin)], plan);
    else if (tile.tokens <= limit && tile.queryCount == 1)
      takePath(view, list, tile, plan);
    else if (tile.tokens <= limit)
      takeWhole(view, list, tile, plan);
    else if (tile.isEven)
      cutTile(view, list, tile, roundUp(divideUp(tile.tokens, divideUp(tile.tokens, limit)), kChunkStep),
              plan);
    else
      cutTile(view, list, tile, limit, plan);
  }
  plan.items.resize(static_cast<std::size_t>(itemCount_));
  plan.runs.resize(static_cast<std::size_t>(runCount_));
  plan.tails.resize(static_cast<std::size_t>(tailCount_));
  // From the ends of intervals to a count for each query.
  for (std::size_t i = 1; i < partials_.size(); ++i)
    partials_[i] += partials_[i - 1];
  if (auto given = giveSlots(mayWriteOutput, plan); !given)
    return given;
  makeMergeMap(plan);
  return {};
}

/// A tile that is one item: most are, and queries of deep trees have many runs.
void ItemCutter::takeWhole(const TreeView &view, const TileList &list, const Tile &tile, Plan &plan) {
  const Segment *segment = list.runs.data() + tile.runBegin;
  makeRoom(plan, 1, tile.runCount);
  abi::Run *run = plan.runs.data() + runCount_;
  const Place *places = view.places.data();
  const int queryBegin = segment->queryBegin;
  int readersBegin = queryBegin, readersEnd = queryBegin, tokens = 0;
  bool isOneInterval = true;
  for (int i = 0; i < tile.runCount; ++i, ++run, ++segment) {
    const Place &place = places[segment->place];
    *run = {tokens,
            segment->tokens,
            place.location + segment->begin,
            place.position + segment->begin,
            place.depth,
            segment->queryBegin - queryBegin,
            segment->queryEnd - queryBegin,
            0};
    tokens += segment->tokens;
    if (segment->queryBegin > readersEnd) {
      isOneInterval = false;
      addReaders({itemCount_, readersBegin, readersEnd}, isOneInterval);
      readersBegin = segment->queryBegin;
    }
    readersEnd = std::max(readersEnd, segment->queryEnd);
    if (place.leaf >= 0 && segment->begin + segment->tokens == place.tokens) {
      plan.tails[static_cast<std::size_t>(tailCount_++)] = {place.leaf, itemCount_, runCount_ + i};
    }
  }
  addReaders({itemCount_, readersBegin, readersEnd}, isOneInterval);
  plan.items[static_cast<std::size_t>(itemCount_++)] = {
      queryBegin, readersEnd - queryBegin, runCount_, tile.runCount, tokens, 0, 0, 0};
  runCount_ += tile.runCount;
}

void ItemCutter::cutTile(const TreeView &view, const TileList &list, const Tile &tile, int chunk,
                         Plan &plan) {
  const int mostItems = divideUp(tile.tokens, chunk);
  makeRoom(plan, mostItems, tile.runCount + mostItems);
  abi::Item *item = plan.items.data() + itemCount_;
  abi::Run *run = plan.runs.data() + runCount_;
  Plan::Tail *tail = plan.tails.data() + tailCount_;
  int queryBegin = 0, runBegin = 0, itemTokens = 0; // of the item at hand
  // What is open of its readers: an interval, as long as runs overlap or touch.
  int readersBegin = 0, readersEnd = 0;
  bool isOneInterval = true;
  int left = tile.tokens;
  for (int r = tile.runBegin; r < tile.runBegin + tile.runCount; ++r) {
    const Segment &segment = list.runs[static_cast<std::size_t>(r)];
    const Place &place = view.places[static_cast<std::size_t>(segment.place)];
    int begin = segment.begin;
    const int end = begin + segment.tokens;
    while (begin < end) {
      if (itemTokens == 0) {
        queryBegin = readersBegin = segment.queryBegin;
        readersEnd = segment.queryEnd;
        runBegin = runCount_;
        isOneInterval = true;
      } else if (segment.queryBegin > readersEnd) {
        isOneInterval = false;
        addReaders({itemCount_, readersBegin, readersEnd}, isOneInterval);
        readersBegin = segment.queryBegin;
        readersEnd = segment.queryEnd;
      } else {
        readersEnd = std::max(readersEnd, segment.queryEnd);
      }
      const int tokens = std::min(end - begin, chunk - itemTokens);
      *run++ = {itemTokens,
                tokens,
                place.location + begin,
                place.position + begin,
                place.depth,
                segment.queryBegin - queryBegin,
                segment.queryEnd - queryBegin,
                0};
      begin += tokens;
      itemTokens += tokens;
      left -= tokens;
      if (place.leaf >= 0 && begin == place.tokens) {
        *tail++ = {place.leaf, itemCount_, runCount_};
        ++tailCount_;
      }
      ++runCount_;
      if (itemTokens < chunk && left > 0)
        continue;
      addReaders({itemCount_, readersBegin, readersEnd}, isOneInterval);
      *item++ = {queryBegin, readersEnd - queryBegin, runBegin, runCount_ - runBegin, itemTokens, 0, 0, 0};
      ++itemCount_;
      itemTokens = 0;
    }
  }
}

/// Of an item whose readers are several intervals: they may not read other items, and the queries between
/// them may read none at all. (Those get their zeros from the first item that spans them.)
bool ItemCutter::areComplete(std::span<const Readers> parts) const {
  int reached = parts.front().begin;
  for (const Readers &part : parts) {
    for (int query = reached; query < part.begin; ++query)
      if (partials_[query] != 0 || isWritten_[query])
        return false;
    if (unfinished_[part.begin] != unfinished_[part.end])
      return false;
    reached = part.end;
  }
  return true;
}

/// Items and their readers' intervals (none: the item's own), one after the other.
template <typename Callback> void ItemCutter::forEachItem(Plan &plan, Callback callback) const {
  const Readers *part = parts_.data(), *end = part + parts_.size();
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const Readers *begin = part;
    while (part != end && part->item == static_cast<int>(i))
      ++part;
    callback(plan.items[i], std::span(begin, part));
  }
}

support::Result<void> ItemCutter::giveSlots(bool mayWriteOutput, Plan &plan) {
  const std::size_t queries = partials_.size() - 1;
  unfinished_.resize(queries + 1);
  unfinished_[0] = 0;
  for (std::size_t i = 0; i < queries; ++i)
    unfinished_[i + 1] = unfinished_[i] + (partials_[i] != 1);
  isWritten_.assign(queries, 0);
  long long slots = 0;
  forEachItem(plan, [&](abi::Item &item, std::span<const Readers> parts) {
    if (mayWriteOutput && isComplete(item, parts)) {
      item.partialBegin = -1;
      if (item.queryCount == 1) // often, and a call of memset each is dear
        isWritten_[item.queryBegin] = 1;
      else
        std::fill_n(isWritten_.begin() + item.queryBegin, item.queryCount, char{1});
      return;
    }
    item.partialBegin = static_cast<int>(std::min<long long>(slots, kMostPartials));
    slots += item.queryCount;
  });
  if (slots > kMostPartials)
    return support::Error{support::ErrorCode::Diagnostics,
                          "the plan needs " + std::to_string(slots) + " partials, at most " +
                              std::to_string(kMostPartials) + " can be planned",
                          "use a larger chunk, or partition `union`"};
  plan.partialSlots = static_cast<int>(slots);
  return {};
}

void ItemCutter::makeMergeMap(Plan &plan) {
  const std::size_t queries = isWritten_.size();
  plan.mergeQuery.resize(queries);
  plan.mergeBegin.resize(queries + 1);
  plan.mergeBegin[0] = 0;
  cursor_.resize(queries);
  int slots = 0;
  std::size_t merged = 0;
  for (std::size_t i = 0; i < queries; ++i) {
    if (isWritten_[i])
      continue;
    cursor_[i] = slots;
    slots += partials_[i];
    plan.mergeQuery[merged++] = static_cast<int>(i);
    plan.mergeBegin[merged] = slots;
  }
  plan.mergeQuery.resize(merged);
  plan.mergeBegin.resize(merged + 1);
  plan.mergeSlot.resize(static_cast<std::size_t>(slots));
  if (slots == 0)
    return;
  int *const slotOf = plan.mergeSlot.data(), *const cursor = cursor_.data();
  // Items stand in path order, so each query's slots come in it, too.
  forEachItem(plan, [&](const abi::Item &item, std::span<const Readers> parts) {
    if (item.partialBegin < 0)
      return;
    const auto fill = [&](int begin, int end) {
      for (int query = begin, slot = item.partialBegin + begin - item.queryBegin; query < end; ++query)
        slotOf[cursor[query]++] = slot++;
    };
    if (parts.empty())
      fill(item.queryBegin, item.queryBegin + item.queryCount);
    for (const Readers &part : parts)
      fill(part.begin, part.end);
  });
}

} // namespace deft::plan
