#include "runtime/plan/Items.h"

#include <algorithm>
#include <string>

namespace deft::plan {

namespace {

int divideUp(int a, int b) { return (a - 1) / b + 1; }
int roundUp(int a, int step) { return divideUp(a, step) * step; }

} // namespace

support::Result<void> ItemCutter::cut(const TreeView &view, const TileList &list, int chunkTokens,
                                      bool mayWriteOutput, Plan &plan) {
  plan.items.clear();
  plan.runs.clear();
  plan.tails.clear();
  parts_.clear();
  partials_.assign(static_cast<std::size_t>(view.queryCount()) + 1, 0);
  for (const Tile &tile : list.tiles)
    cutTile(view, list, tile, chunkTokens, plan);
  // From the ends of intervals to a count for each query.
  for (std::size_t i = 1; i < partials_.size(); ++i)
    partials_[i] += partials_[i - 1];
  if (auto given = giveSlots(mayWriteOutput, plan); !given)
    return given;
  makeMergeMap(plan);
  return {};
}

void ItemCutter::cutTile(const TreeView &view, const TileList &list, const Tile &tile, int chunkTokens,
                         Plan &plan) {
  const int limit = tile.chunkTokens > 0 ? roundUp(tile.chunkTokens, kChunkStep) : chunkTokens;
  int chunk = limit;
  if (tile.isEven && tile.tokens > limit)
    chunk = roundUp(divideUp(tile.tokens, divideUp(tile.tokens, limit)), kChunkStep);

  if (tile.tokens <= chunk) {
    takeWhole(view, list, tile, plan);
    return;
  }
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
        runBegin = static_cast<int>(plan.runs.size());
        isOneInterval = true;
      } else if (segment.queryBegin > readersEnd) {
        isOneInterval = false;
        addReaders({static_cast<int>(plan.items.size()), readersBegin, readersEnd}, isOneInterval);
        readersBegin = segment.queryBegin;
        readersEnd = segment.queryEnd;
      } else {
        readersEnd = std::max(readersEnd, segment.queryEnd);
      }
      const int tokens = std::min(end - begin, chunk - itemTokens);
      plan.runs.emplace_back(itemTokens, tokens, place.location + begin, place.position + begin, place.depth,
                             segment.queryBegin - queryBegin, segment.queryEnd - queryBegin, 0);
      begin += tokens;
      itemTokens += tokens;
      left -= tokens;
      if (place.leaf >= 0 && begin == place.tokens)
        plan.tails.emplace_back(place.leaf, static_cast<int>(plan.items.size()),
                                static_cast<int>(plan.runs.size()) - 1);
      if (itemTokens < chunk && left > 0)
        continue;
      addReaders({static_cast<int>(plan.items.size()), readersBegin, readersEnd}, isOneInterval);
      plan.items.emplace_back(queryBegin, readersEnd - queryBegin, runBegin,
                              static_cast<int>(plan.runs.size()) - runBegin, itemTokens, 0, 0, 0);
      itemTokens = 0;
    }
  }
}

/// A tile that is one item: most are, and queries of deep trees have many runs.
void ItemCutter::takeWhole(const TreeView &view, const TileList &list, const Tile &tile, Plan &plan) {
  const std::span<const Segment> segments(list.runs.data() + tile.runBegin,
                                          static_cast<std::size_t>(tile.runCount));
  const int item = static_cast<int>(plan.items.size()), runBegin = static_cast<int>(plan.runs.size());
  const int queryBegin = segments.front().queryBegin;
  int readersBegin = queryBegin, readersEnd = queryBegin;
  bool isOneInterval = true;
  plan.runs.resize(plan.runs.size() + segments.size());
  abi::Run *run = plan.runs.data() + runBegin;
  int tokens = 0;
  for (const Segment &segment : segments) {
    const Place &place = view.places[static_cast<std::size_t>(segment.place)];
    run->begin = tokens;
    run->tokens = segment.tokens;
    run->location = place.location + segment.begin;
    run->position = place.position + segment.begin;
    run->depth = place.depth;
    run->queryBegin = segment.queryBegin - queryBegin;
    run->queryEnd = segment.queryEnd - queryBegin;
    tokens += segment.tokens;
    if (segment.queryBegin > readersEnd) {
      isOneInterval = false;
      addReaders({item, readersBegin, readersEnd}, isOneInterval);
      readersBegin = segment.queryBegin;
    }
    readersEnd = std::max(readersEnd, segment.queryEnd);
    if (place.leaf >= 0 && segment.begin + segment.tokens == place.tokens)
      plan.tails.emplace_back(place.leaf, item, static_cast<int>(run - plan.runs.data()));
    ++run;
  }
  addReaders({item, readersBegin, readersEnd}, isOneInterval);
  plan.items.emplace_back(queryBegin, readersEnd - queryBegin, runBegin, tile.runCount, tokens, 0, 0, 0);
}

/// Whether all rows of the item are finished by it: its readers read no other item, and the queries between
/// them none at all. (Those get their zeros from the first item that spans them.)
bool ItemCutter::isComplete(const abi::Item &item, std::span<const Readers> parts) const {
  const auto isOnlyHere = [&](int begin, int end) { return unfinished_[begin] == unfinished_[end]; };
  if (parts.empty())
    return isOnlyHere(item.queryBegin, item.queryBegin + item.queryCount);
  int reached = parts.front().begin;
  for (const Readers &part : parts) {
    for (int query = reached; query < part.begin; ++query)
      if (partials_[query] != 0 || isWritten_[query])
        return false;
    if (!isOnlyHere(part.begin, part.end))
      return false;
    reached = part.end;
  }
  return true;
}

/// Items and their readers' intervals, one after the other.
template <typename Callback> void ItemCutter::forEachItem(Plan &plan, Callback callback) const {
  std::size_t next = 0;
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const std::size_t begin = next;
    while (next < parts_.size() && parts_[next].item == static_cast<int>(i))
      ++next;
    if (!callback(plan.items[i], std::span(parts_).subspan(begin, next - begin)))
      return;
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
      std::fill_n(isWritten_.begin() + item.queryBegin, item.queryCount, char{1});
      return true;
    }
    item.partialBegin = static_cast<int>(slots);
    slots += item.queryCount;
    return slots <= kMostPartials;
  });
  if (slots > kMostPartials)
    return support::Error{support::ErrorCode::Diagnostics,
                          "the plan needs more than " + std::to_string(kMostPartials) + " partials",
                          "use a larger chunk, or partition `union`"};
  plan.partialSlots = static_cast<int>(slots);
  return {};
}

void ItemCutter::makeMergeMap(Plan &plan) {
  plan.mergeQuery.clear();
  plan.mergeBegin.assign(1, 0);
  cursor_.resize(isWritten_.size());
  int slots = 0;
  for (std::size_t i = 0; i < isWritten_.size(); ++i) {
    if (isWritten_[i])
      continue;
    cursor_[i] = slots;
    slots += partials_[i];
    plan.mergeQuery.push_back(static_cast<int>(i));
    plan.mergeBegin.push_back(slots);
  }
  plan.mergeSlot.resize(static_cast<std::size_t>(slots));
  // Items stand in path order, so each query's slots come in it, too.
  forEachItem(plan, [&](const abi::Item &item, std::span<const Readers> parts) {
    if (item.partialBegin < 0)
      return true;
    const auto fill = [&](int begin, int end) {
      for (int query = begin, slot = item.partialBegin + begin - item.queryBegin; query < end; ++query)
        plan.mergeSlot[cursor_[query]++] = slot++;
    };
    if (parts.empty())
      fill(item.queryBegin, item.queryBegin + item.queryCount);
    for (const Readers &part : parts)
      fill(part.begin, part.end);
    return true;
  });
}

} // namespace deft::plan
