#include "runtime/plan/Items.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace deft::plan {

namespace {

int divideUp(int a, int b) { return (a - 1) / b + 1; }
int roundUp(int a, int step) { return divideUp(a, step) * step; }

/// Without a branch for each value.
template <int kCount> bool areZero(const int *values) {
  int any = 0;
  for (int i = 0; i < kCount; ++i)
    any |= values[i];
  return any == 0;
}

/// Makes room for `needed` values: the size runs ahead of the used part, so appending is only a store.
template <typename Values> void growTo(Values &values, std::size_t needed) {
  if (values.size() < needed) [[unlikely]]
    values.resize(std::max(needed, std::min(values.size() + values.size() / 8 + 64, values.capacity())));
}

} // namespace

/// The places for the next values. Plain pointers, so a store does not make the compiler reload others.
struct ItemCutter::Cursor {
  const Place *places;
  const int *queryPos;
  int *partials;
  abi::Item *items = nullptr; ///< these three are valid once there is room
  abi::Run *runs = nullptr;
  Plan::Tail *tails = nullptr;
  int item = 0, run = 0, tail = 0;
  int tableTokens = 0; ///< as in Plan::tableTokens

  Cursor(const TreeView &view, std::vector<int> &partials)
      : places(view.places.data()), queryPos(view.queryPos.data()), partials(partials.data()) {}
  /// Makes room for items, for runs (each run may end a leaf), and for one extra tail.
  void makeRoom(Plan &plan, std::size_t itemCount, std::size_t runCount) {
    growTo(plan.items, itemCount);
    RunList::Own &own = plan.runs.own();
    growTo(own, runCount);
    growTo(plan.tails, runCount + 1);
    items = plan.items.data();
    runs = own.data();
    tails = plan.tails.data();
  }
  /// The tokens of a place on its path that a query sees.
  int seenOf(int query, const Place &place) const {
    return std::min(queryPos[query] + 1 - place.position, place.tokens);
  }
  void addPartials(int queryBegin, int queryEnd) {
    ++partials[queryBegin];
    --partials[queryEnd];
  }
  void addRun(const Segment &segment, int begin, int queryBegin, int queryEnd) {
    const Place &place = places[segment.place];
    const int location = place.location + segment.begin;
    tableTokens = std::max(tableTokens, location + segment.tokens);
    const int position = place.position + place.hidden + segment.begin;
    runs[run] = {begin,      segment.tokens, location,      position, place.depth,
                 queryBegin, queryEnd,       segment.slope, 0};
    noteTail(segment, run++);
  }
  void noteTail(const Segment &segment, int index) {
    const Place &place = places[segment.place];
    if (place.leaf >= 0 && segment.begin + segment.tokens == place.tokens)
      tails[tail++] = {place.leaf, item, index};
  }
};

support::Result<void> ItemCutter::cut(const TreeView &view, const TileList &list, int chunkTokens,
                                      bool mayWriteOutput, Plan &plan) {
  parts_.clear();
  partials_.assign(static_cast<std::size_t>(view.queryCount()) + 1, 0);
  Cursor at(view, partials_);
  // Room for an item for each tile, and for items of tiles that are cut.
  std::size_t itemRoom = list.tiles.size(), runRoom = list.runCount();
  at.makeRoom(plan, itemRoom, runRoom);
  const Tile *const end = list.tiles.data() + list.tiles.size();
  for (const Tile *next = list.tiles.data(); next != end;) {
    if (next->isPath && next->tokens <= chunkTokens && next->chunkTokens == 0) {
      next = takePaths(next, end, chunkTokens, at);
      continue;
    }
    const Tile &tile = *next++;
    const int limit = tile.chunkTokens > 0 ? roundUp(tile.chunkTokens, kChunkStep) : chunkTokens;
    const Segment *runs = tile.isPath ? nullptr : list.runs.data() + tile.runBegin; // may be empty
    if (tile.isPath) {
      findPath(tile, at);
      runs = path_.data();
    }
    if (tile.tokens <= limit && tile.runCount == 1) { // as for most nodes
      const int queries = runs->queryEnd - runs->queryBegin;
      at.items[at.item] = {runs->queryBegin, queries, at.run, 1, runs->tokens, 0, 0, 0};
      at.addRun(*runs, 0, 0, queries);
      at.addPartials(runs->queryBegin, runs->queryEnd);
      ++at.item;
    } else if (tile.tokens <= limit) {
      takeWhole(tile, runs, at);
    } else {
      const int items = divideUp(tile.tokens, limit);
      const int chunk = tile.isEven ? evenChunk(tile.tokens, limit) : limit;
      itemRoom += static_cast<std::size_t>(items);
      runRoom += static_cast<std::size_t>(items);
      at.makeRoom(plan, itemRoom, runRoom);
      cutTile(tile, runs, chunk, at);
    }
  }
  plan.items.resize(static_cast<std::size_t>(at.item));
  plan.runs.own().resize(static_cast<std::size_t>(at.run));
  plan.tails.resize(static_cast<std::size_t>(at.tail));
  plan.tableTokens = at.tableTokens;
  if (auto given = giveSlots(mayWriteOutput, plan); !given)
    return given;
  makeMergeMap(plan);
  return {};
}

/// Takes paths that are one item each, up to the first tile that is not, which it returns. Positions tell
/// where the tokens of a path are. The part that a path shares with the one before is copied.
const Tile *ItemCutter::takePaths(const Tile *tile, const Tile *end, int limit, Cursor &at) {
  const Place *const places = at.places;
  abi::Run *const runs = at.runs;
  int run = at.run, item = at.item, before = run; // where the runs of the previous path begin
  for (; tile != end && tile->isPath && tile->tokens <= limit && tile->chunkTokens == 0; ++tile, ++item) {
    const int query = tile->queryBegin, count = tile->queryCount;
    const int begin = run, fresh = begin == before ? begin : begin + tile->sharedRuns;
    for (; run != fresh; ++run, ++before) {
      runs[run] = runs[before];
      runs[run].queryEnd = count;
    }
    before = begin;
    run = begin + tile->runCount;
    at.items[item] = {query, count, begin, tile->runCount, tile->tokens, 0, 0, 0};
    at.addPartials(query, query + count);
    const Place *place = places + tile->runBegin;
    const int sees = at.queryPos[query] + 1 - place->position;
    int tokens = place->tokens;
    if (sees < tokens)
      tokens = sees;
    else if (place->leaf >= 0 && tokens > 0)
      at.tails[at.tail++] = {place->leaf, item, run - 1};
    const int first = place->position + tokens - tile->tokens;
    for (int last = run; last != fresh; tokens = place->tokens) {
      if (tokens > 0) {
        runs[--last] = {place->position - first,
                        tokens,
                        place->location,
                        place->position + place->hidden,
                        place->depth,
                        0,
                        count,
                        0,
                        0};
        at.tableTokens = std::max(at.tableTokens, place->location + tokens);
      }
      if (last != fresh)
        place = places + place->parent;
    }
  }
  at.item = item;
  at.run = run;
  return tile;
}

/// Collects the runs of a path that is cut.
void ItemCutter::findPath(const Tile &tile, const Cursor &at) {
  path_.resize(std::max(path_.size(), static_cast<std::size_t>(tile.runCount)));
  int p = tile.runBegin, tokens = at.seenOf(tile.queryBegin, at.places[p]);
  for (int run = tile.runCount; run > 0;) {
    if (tokens > 0)
      path_[static_cast<std::size_t>(--run)] = {p, 0, tokens, tile.queryBegin,
                                                tile.queryBegin + tile.queryCount};
    if (run > 0) {
      p = at.places[p].parent;
      tokens = at.places[p].tokens;
    }
  }
}

/// Takes a tile that is one item.
inline void ItemCutter::takeWhole(const Tile &tile, const Segment *runs, Cursor &at) {
  const int queryBegin = runs->queryBegin, runBegin = at.run;
  int readersBegin = queryBegin, readersEnd = queryBegin, tokens = 0;
  bool isOneInterval = true;
  for (const Segment *segment = runs, *end = runs + tile.runCount; segment != end; ++segment) {
    at.addRun(*segment, tokens, segment->queryBegin - queryBegin, segment->queryEnd - queryBegin);
    tokens += segment->tokens;
    if (segment->queryBegin > readersEnd) {
      isOneInterval = false;
      addReaders({at.item, readersBegin, readersEnd}, isOneInterval, at);
      readersBegin = segment->queryBegin;
    }
    readersEnd = std::max(readersEnd, segment->queryEnd);
  }
  addReaders({at.item, readersBegin, readersEnd}, isOneInterval, at);
  at.items[at.item++] = {queryBegin, readersEnd - queryBegin, runBegin, tile.runCount, tokens, 0, 0, 0};
}

void ItemCutter::cutTile(const Tile &tile, const Segment *runs, int chunk, Cursor &at) {
  int queryBegin = 0, runBegin = 0, itemTokens = 0; // of the current item
  // The open interval of its readers: it grows while runs overlap or touch.
  int readersBegin = 0, readersEnd = 0;
  bool isOneInterval = true;
  int left = tile.tokens;
  for (const Segment *run = runs; run != runs + tile.runCount; ++run) {
    Segment part = *run;
    for (const int end = run->begin + run->tokens; part.begin < end;) {
      if (itemTokens == 0) {
        queryBegin = readersBegin = part.queryBegin;
        readersEnd = part.queryEnd;
        runBegin = at.run;
        isOneInterval = true;
      } else if (part.queryBegin > readersEnd) {
        isOneInterval = false;
        addReaders({at.item, readersBegin, readersEnd}, isOneInterval, at);
        readersBegin = part.queryBegin;
        readersEnd = part.queryEnd;
      } else {
        readersEnd = std::max(readersEnd, part.queryEnd);
      }
      part.tokens = std::min(end - part.begin, chunk - itemTokens);
      at.addRun(part, itemTokens, part.queryBegin - queryBegin, part.queryEnd - queryBegin);
      part.begin += part.tokens;
      part.queryBegin += part.slope * part.tokens;
      itemTokens += part.tokens;
      left -= part.tokens;
      if (itemTokens < chunk && left > 0)
        continue;
      addReaders({at.item, readersBegin, readersEnd}, isOneInterval, at);
      at.items[at.item++] = {
          queryBegin, readersEnd - queryBegin, runBegin, at.run - runBegin, itemTokens, 0, 0, 0};
      itemTokens = 0;
    }
  }
}

/// Adds the queries that see some of the current item.
inline void ItemCutter::addReaders(const Readers &readers, bool areAll, Cursor &at) {
  at.addPartials(readers.begin, readers.end);
  if (!areAll) [[unlikely]]
    parts_.push_back(readers);
}

/// For an item whose readers are several intervals: its readers must not read other items, and the queries
/// between the intervals must read none. (These get their zeros from the first item that spans them.)
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

/// Visits items with their readers' intervals (none: the item's own interval).
template <typename Callback> void ItemCutter::forEachItem(Plan &plan, Callback callback) const {
  abi::Item *item = plan.items.data();
  const int count = static_cast<int>(plan.items.size());
  if (parts_.empty()) {
    for (int i = 0; i < count; ++i)
      callback(item[i], std::span<const Readers>());
    return;
  }
  const Readers *part = parts_.data(), *end = part + parts_.size();
  for (int i = 0; i < count; ++i) {
    const Readers *begin = part;
    while (part != end && part->item == i)
      ++part;
    callback(item[i], std::span(begin, part));
  }
}

support::Result<void> ItemCutter::giveSlots(bool mayWriteOutput, Plan &plan) {
  const int queries = static_cast<int>(partials_.size()) - 1;
  unfinished_.resize(partials_.size());
  isWritten_.assign(partials_.size() - 1, 0);
  int *const partials = partials_.data(), *const unfinished = unfinished_.data();
  char *const isWritten = isWritten_.data();
  // Turns the ends of intervals into a count for each query.
  int reads = 0, before = 0;
  constexpr int kAtOnce = 16; // in wide items, most queries read the same item as the query before
  for (int i = 0; i < queries; ++i) {
    if (reads == 1 && i % kAtOnce == 0 && i + kAtOnce <= queries && areZero<kAtOnce>(partials + i)) {
      std::fill_n(unfinished + i, kAtOnce, before);
      std::fill_n(partials + i, kAtOnce, 1);
      i += kAtOnce - 1;
      continue;
    }
    unfinished[i] = before;
    partials[i] = reads += partials[i];
    before += reads != 1;
  }
  unfinished[queries] = before;
  long long slots = 0;
  int longest = 0;
  forEachItem(plan, [&](abi::Item &item, std::span<const Readers> parts) {
    longest = std::max(longest, item.tokens);
    const int begin = item.queryBegin, count = item.queryCount;
    const bool isComplete =
        parts.empty() ? unfinished[begin] == unfinished[begin + count] : areComplete(parts);
    if (mayWriteOutput && isComplete) {
      item.partialBegin = -1;
      isWritten[begin] = 1; // often only one, and a call of memset for each is expensive
      for (int i = 1; i < count; ++i)
        isWritten[begin + i] = 1;
      return;
    }
    item.partialBegin = static_cast<int>(std::min<long long>(slots, kMostPartials));
    slots += count;
  });
  longest_ = longest;
  if (slots > kMostPartials)
    return support::Error{support::ErrorCode::Diagnostics,
                          "the plan needs " + std::to_string(slots) + " partials, at most " +
                              std::to_string(kMostPartials) + " can be planned",
                          "use a larger chunk, or partition `union`"};
  plan.partialSlots = static_cast<int>(slots);
  return {};
}

void ItemCutter::makeMergeMap(Plan &plan) {
  if (isWritten_.empty() || std::memchr(isWritten_.data(), 0, isWritten_.size()) == nullptr) { // most plans
    plan.mergeQuery.clear();
    plan.mergeBegin.assign(1, 0);
    plan.mergeSlot.clear();
    return;
  }
  const std::size_t queries = isWritten_.size();
  plan.mergeQuery.resize(queries);
  plan.mergeBegin.resize(queries + 1);
  cursor_.resize(queries);
  int *const mergeQuery = plan.mergeQuery.data(), *const mergeBegin = plan.mergeBegin.data();
  int *const cursor = cursor_.data();
  const int *const partials = partials_.data();
  const char *const isWritten = isWritten_.data();
  int slots = 0;
  std::size_t merged = 0;
  for (std::size_t i = 0; i < queries; ++i) {
    // Without a branch, which would be mispredicted: the next value overwrites one of a finished query.
    cursor[i] = slots;
    mergeQuery[merged] = static_cast<int>(i);
    mergeBegin[merged] = slots;
    merged += isWritten[i] == 0;
    slots += isWritten[i] == 0 ? partials[i] : 0;
  }
  mergeBegin[merged] = slots;
  plan.mergeQuery.resize(merged);
  plan.mergeBegin.resize(merged + 1);
  plan.mergeSlot.resize(static_cast<std::size_t>(slots));
  if (slots == 0)
    return;
  int *const slotOf = plan.mergeSlot.data();
  // Items are in path order, so the slots of each query are as well.
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
