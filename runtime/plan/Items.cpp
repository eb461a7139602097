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
  const int chunk =
      tile.isEven ? roundUp(divideUp(tile.tokens, divideUp(tile.tokens, limit)), kChunkStep) : limit;
  abi::Item item{};
  const auto finish = [&] {
    item.runCount = static_cast<int>(plan.runs.size()) - item.runBegin;
    item.queryCount = finishReaders() - item.queryBegin;
    plan.items.push_back(item);
  };
  for (int r = tile.runBegin; r < tile.runBegin + tile.runCount; ++r) {
    const Segment &segment = list.runs[static_cast<std::size_t>(r)];
    const Place &place = view.places[static_cast<std::size_t>(segment.place)];
    for (int begin = segment.begin, end = begin + segment.tokens; begin < end;) {
      if (item.tokens == chunk) {
        finish();
        item = {};
      }
      if (item.tokens == 0) {
        item.queryBegin = segment.queryBegin;
        item.runBegin = static_cast<int>(plan.runs.size());
      }
      abi::Run run{};
      run.begin = item.tokens;
      run.tokens = std::min(end - begin, chunk - item.tokens);
      run.location = place.location + begin;
      run.position = place.position + begin;
      run.depth = place.depth;
      run.queryBegin = segment.queryBegin - item.queryBegin;
      run.queryEnd = segment.queryEnd - item.queryBegin;
      begin += run.tokens;
      item.tokens += run.tokens;
      if (open_.empty() || open_.back().end < segment.queryBegin)
        open_.push_back({static_cast<int>(plan.items.size()), segment.queryBegin, segment.queryEnd});
      else
        open_.back().end = std::max(open_.back().end, segment.queryEnd);
      if (place.leaf >= 0 && begin == place.tokens)
        plan.tails.push_back(
            {place.leaf, static_cast<int>(plan.items.size()), static_cast<int>(plan.runs.size())});
      plan.runs.push_back(run);
    }
  }
  finish();
}

/// Counts the item's partials and returns where its readers end.
int ItemCutter::finishReaders() {
  for (const Readers &part : open_) {
    ++partials_[static_cast<std::size_t>(part.begin)];
    --partials_[static_cast<std::size_t>(part.end)];
  }
  if (open_.size() > 1)
    parts_.insert(parts_.end(), open_.begin(), open_.end());
  const int end = open_.back().end;
  open_.clear();
  return end;
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
