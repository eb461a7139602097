#include "runtime/plan/PlaceDrafts.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace deft::plan {

namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Reads the bits of rows.
class Rows {
public:
  Rows(const unsigned *bits, int count, int rows) : bits_(bits), count_(count), words_((rows + 31) / 32) {}

  bool sees(int draft, int other) const {
    return (bits_[std::int64_t{draft} * words_ + other / 32] >> other % 32 & 1) != 0;
  }
  int seen(int draft) const {
    int all = 0;
    for (int other = 0; other < count_; ++other)
      all += sees(draft, other) ? 1 : 0;
    return all;
  }
  /// Whether a draft sees exactly itself and what its parent sees; without a parent, only itself.
  bool isBelow(int draft, int parent) const {
    for (int other = 0; other < count_; ++other)
      if (sees(draft, other) != (other == draft || (parent >= 0 && sees(parent, other))))
        return false;
    return parent < 0 || !sees(parent, draft);
  }

private:
  const unsigned *bits_;
  int count_, words_;
};

int gainOf(const abi::DraftArgs &args, const abi::DraftRequest &request) {
  return args.lengths ? std::clamp(args.lengths[request.request] - request.length, 0, request.mostGain) : 0;
}

/// Which slots of a request lie in this cache, and where.
class Slots {
public:
  Slots(const abi::DraftArgs &args, const abi::DraftRequest &request)
      : request_(request), words_(args.held + request.heldBegin) {}

  bool isHeld(int slot) const {
    return request_.spread == abi::kWhole || (words_[slot / 32] >> slot % 32 & 1) != 0;
  }
  int heldBefore(int slot) const {
    int held = 0;
    for (int other = 0; other < slot; ++other)
      held += isHeld(other) ? 1 : 0;
    return held;
  }
  int locationOf(int slot) const {
    return request_.location + (request_.spread >= abi::kPacked ? heldBefore(slot) : slot);
  }
  /// Calls f(slot, tokens) for each run of the first `gain` slots.
  template <class F> void forEachRun(int gain, F f) const {
    if (request_.spread == abi::kJoined) {
      if (const int held = heldBefore(gain); held > 0)
        f(0, held);
      return;
    }
    for (int slot = 0, end; slot < gain; slot = end) {
      end = slot + 1;
      if (!isHeld(slot))
        continue;
      while (end < gain && isHeld(end))
        ++end;
      f(slot, end - slot);
    }
  }

private:
  const abi::DraftRequest &request_;
  const unsigned *words_;
};

unsigned long long markOf(const abi::DraftRequest &request, int number) {
  return static_cast<unsigned long long>(static_cast<unsigned>(number)) << 32 |
         static_cast<unsigned>(request.request + 1);
}

/// With the given depths, if any, instead of the counted ones.
DraftPlaces placesIn(const abi::DraftArgs &args, const abi::DraftRequest &request) {
  const std::int64_t first = std::int64_t{request.request} * args.rows;
  const unsigned *const bits = args.bits + first * ((args.rows + 31) / 32);
  DraftPlaces places = placesOf(bits, request.count, args.rows);
  for (int place = 0; place < request.count && args.depths; ++place) {
    const int draft = places.draft[index(place)], depth = args.depths[first + draft];
    if (depth < 0 || depth >= request.count)
      places.wrong = std::max(places.wrong, draft);
    places.depth[index(place)] = depth;
  }
  if (places.wrong >= 0) {
    std::iota(places.draft.begin(), places.draft.end(), 0);
    std::fill(places.size.begin(), places.size.end(), 1);
    std::fill(places.depth.begin(), places.depth.end(), 0);
  }
  return places;
}

void writeQueries(const abi::DraftArgs &args, const abi::DraftRequest &request, const DraftPlaces &places) {
  const int length = request.length + gainOf(args, request);
  for (int place = 0; place < request.count; ++place) {
    const int query = args.queryAt[request.firstQuery + place];
    args.callerIndex[query] = request.firstQuery + places.draft[index(place)];
    args.queryPos[query] = length + places.depth[index(place)];
  }
  if (places.wrong >= 0)
    *args.noTree = markOf(request, places.wrong);
  if (!args.lengths)
    return;
  if (const int now = args.lengths[request.request];
      now < request.length || now - request.length > request.mostGain)
    *args.unserved = markOf(request, now);
}

void writeItem(const abi::DraftArgs &args, const abi::DraftItem &item,
               const std::vector<DraftPlaces> &ofRequests) {
  abi::Item &written = args.items[item.item];
  abi::Run *run = args.runs + item.runBegin + item.runCount;
  int tokens = item.tokens;
  const auto put = [&](int count, int location, int position, int queryBegin, int queryEnd) {
    *run++ = {tokens, count, location, position, 0, queryBegin, queryEnd, 0, 0};
    tokens += count;
  };
  for (int p = item.partBegin; p < item.partBegin + item.partCount; ++p) {
    const abi::DraftPart &part = args.parts[p];
    const abi::DraftRequest &request = args.requests[part.request];
    const int gain = gainOf(args, request), length = request.length + gain;
    const Slots slots(args, request);
    if (part.readsGain != 0)
      slots.forEachRun(gain, [&](int slot, int count) {
        put(count, slots.locationOf(slot), request.length + slot, part.queryBegin, part.queryEnd);
      });
    const DraftPlaces &places = ofRequests[index(part.request)];
    const int toItem = part.queryBegin - part.firstPlace;
    for (int place = part.placeBegin; place < part.placeEnd; ++place) {
      const int begin = std::max(place + toItem, part.queryBegin);
      const int end = std::min(place + places.size[index(place)] + toItem, part.queryEnd);
      if (const int slot = gain + places.draft[index(place)]; begin < end && slots.isHeld(slot))
        put(1, slots.locationOf(slot), length + places.depth[index(place)], begin, end);
    }
  }
  if (tokens == 0) // an item without tokens would end the list, so it gets one that no query sees
    put(1, item.spare, 0, 0, 0);
  written.runCount = static_cast<int>(run - (args.runs + item.runBegin));
  written.tokens = tokens;
}

} // namespace

DraftPlaces placesOf(const unsigned *bits, int count, int rows) {
  const Rows tree(bits, count, rows);
  std::vector<int> seen, parent(index(count), -1);
  for (int draft = 0; draft < count; ++draft)
    seen.push_back(tree.seen(draft));
  DraftPlaces places;
  for (int draft = 0; draft < count; ++draft) {
    for (int other = 0; other < count; ++other)
      if (other != draft && tree.sees(draft, other) && seen[index(other)] == seen[index(draft)] - 1)
        parent[index(draft)] = other;
    if (!tree.isBelow(draft, parent[index(draft)]))
      places.wrong = draft;
  }
  if (places.wrong >= 0)
    std::fill(parent.begin(), parent.end(), -1);
  std::vector<std::vector<int>> children(index(count) + 1); // of each draft, and of the root
  for (int draft = 0; draft < count; ++draft)
    children[index(parent[index(draft)] >= 0 ? parent[index(draft)] : count)].push_back(draft);
  std::vector<std::pair<int, int>> open; // draft and depth; the last one is next
  const auto openAll = [&](int node, int depth) {
    for (auto child = children[index(node)].rbegin(); child != children[index(node)].rend(); ++child)
      open.emplace_back(*child, depth);
  };
  openAll(count, 0);
  while (!open.empty()) {
    const auto [draft, depth] = open.back();
    open.pop_back();
    places.draft.push_back(draft);
    places.depth.push_back(depth);
    openAll(draft, depth + 1);
  }
  std::vector<int> size(index(count), 1); // of the subtree of each draft
  for (std::size_t place = places.draft.size(); place-- > 0;)
    if (const int draft = places.draft[place]; parent[index(draft)] >= 0)
      size[index(parent[index(draft)])] += size[index(draft)];
  for (const int draft : places.draft)
    places.size.push_back(size[index(draft)]);
  return places;
}

void placeDrafts(const abi::DraftArgs &args) {
  std::vector<DraftPlaces> ofRequests;
  for (int r = 0; r < args.mostRequests && args.requests[r].count > 0; ++r) {
    ofRequests.push_back(placesIn(args, args.requests[r]));
    writeQueries(args, args.requests[r], ofRequests.back());
  }
  for (int i = 0; i < args.mostItems && args.draftItems[i].item >= 0; ++i)
    writeItem(args, args.draftItems[i], ofRequests);
}

} // namespace deft::plan
