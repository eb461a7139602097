#include "runtime/plan/Drafts.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>

namespace deft::plan {

namespace {

using tree::DraftedRequest;
using tree::DraftStandIn;

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// Finds the stand-ins among a plan's runs.
class StandIns {
public:
  StandIns(std::span<const DraftedRequest> requests, const Plan &plan)
      : requests_(requests), plan_(plan), requestOf_(plan.callerIndex.size(), -1) {
    for (std::size_t r = 0; r < requests.size(); ++r)
      std::fill_n(requestOf_.begin() + requests[r].firstQuery, requests[r].count, static_cast<int>(r));
  }

  /// The request of a run that belongs to a stand-in; -1 for other runs. All its readers are of one block.
  int requestOf(const abi::Item &item, const abi::Run &run) const {
    const int request = requestOf_[index(callerOf(item, run))];
    return request >= 0 && run.position >= requests_[index(request)].length ? request : -1;
  }

  abi::DraftPart partOf(const abi::Item &item, const abi::Run &run, int request) const {
    const DraftedRequest &own = requests_[index(request)];
    const int place = callerOf(item, run) - own.firstQuery;
    const DraftStandIn standIn = DraftStandIn::of(own.count, place / DraftStandIn::kBlock);
    const int first = run.position - own.length;
    assert(first + run.tokens <= standIn.tokens());
    assert(place + run.queryEnd - run.queryBegin <= standIn.firstPlace + standIn.count);
    const int placeBegin = standIn.placeAt(first);
    return {request,    placeBegin, standIn.placeAt(first + run.tokens), run.queryBegin, run.queryEnd, place,
            first == 0, 0};
  }

  /// Whether the part contains everything that its queries may see.
  bool isWhole(const abi::DraftPart &part) const {
    const DraftedRequest &own = requests_[index(part.request)];
    const int last = part.firstPlace + part.queryEnd - part.queryBegin - 1;
    const DraftStandIn standIn = DraftStandIn::of(own.count, last / DraftStandIn::kBlock);
    return part.readsGain != 0 && part.placeEnd == standIn.firstPlace + standIn.count;
  }

private:
  int callerOf(const abi::Item &item, const abi::Run &run) const {
    return plan_.callerIndex[index(item.queryBegin + run.queryBegin)];
  }

  std::span<const DraftedRequest> requests_;
  const Plan &plan_;
  std::vector<int> requestOf_; ///< for each query, by caller's index
};

/// Tries to join a part to the one before it; returns whether it did.
bool join(const StandIns &standIns, abi::DraftPart &part, const abi::DraftPart &next) {
  if (part.request != next.request)
    return false;
  const bool areSameQueries = part.queryBegin == next.queryBegin && part.queryEnd == next.queryEnd;
  if (areSameQueries && part.placeEnd == next.placeBegin) {
    part.placeEnd = next.placeEnd;
    return true;
  }
  const bool areNeighbours = part.queryEnd == next.queryBegin &&
                             next.firstPlace - part.firstPlace == next.queryBegin - part.queryBegin;
  if (!areNeighbours || !standIns.isWhole(part) || !standIns.isWhole(next))
    return false;
  part.placeEnd = next.placeEnd;
  part.queryEnd = next.queryEnd;
  return true;
}

/// Sorts the parts by request and joins as many as possible.
void joinParts(const StandIns &standIns, std::vector<abi::DraftPart> &parts, std::size_t first) {
  const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(first);
  std::sort(begin, parts.end(), [](const abi::DraftPart &a, const abi::DraftPart &b) {
    return std::tie(a.request, a.queryBegin, a.placeBegin) < std::tie(b.request, b.queryBegin, b.placeBegin);
  });
  // The first pass joins parts of equal queries, so that neighbours are complete for the second pass.
  for (int pass = 0; pass < 2; ++pass) {
    std::size_t kept = first;
    for (std::size_t p = first + 1; p < parts.size(); ++p)
      if (!join(standIns, parts[kept], parts[p]))
        parts[++kept] = parts[p];
    parts.resize(std::min(kept + 1, parts.size()));
  }
}

int mostRunsOf(const abi::DraftPart &part, const HeldSlots &slots) {
  const int ofGain = part.readsGain != 0 ? slots.requests[index(part.request)].mostGainRuns : 0;
  return part.placeEnd - part.placeBegin + ofGain;
}

/// Gives items a token for the case that they would have none: one that is written, since a NaN that no row
/// sees would spread. If this cache has no written token at all, merging ignores the data of all its rows.
void findSpares(const HeldSlots &slots, const Plan &plan, DraftTables &tables) {
  std::optional<int> written;
  if (const auto run = std::find_if(plan.runs.begin(), plan.runs.end(),
                                    [](const abi::Run &one) { return one.tokens > 0; });
      run != plan.runs.end())
    written = run->location;
  for (const HeldSlots::OfRequest &own : slots.requests)
    if (!written && own.end > 0)
      written = own.first;
  for (abi::DraftItem &item : tables.items) {
    const HeldSlots::OfRequest &own = slots.requests[index(tables.parts[index(item.partBegin)].request)];
    item.spare = own.spread != abi::kWhole && written ? *written : own.first;
  }
}

unsigned long long requestOf(unsigned long long mark) { return (mark & 0xffffffff) - 1; }
int numberOf(unsigned long long mark) { return static_cast<int>(mark >> 32); }

} // namespace

support::Error noTreeError(unsigned long long mark) {
  const std::string row =
      "bits[" + std::to_string(requestOf(mark)) + "][" + std::to_string(numberOf(mark)) + "]";
  return {support::ErrorCode::Usage, row + " is not a row of a tree of drafts",
          "a draft sees itself and all that its parent sees, at a depth that is not negative and less than "
          "the number of drafts",
          row};
}

support::Error unservedError(unsigned long long mark) {
  return {support::ErrorCode::Usage,
          "request " + std::to_string(requestOf(mark)) + " had " + std::to_string(numberOf(mark)) +
              " tokens before its drafts, which its plan does not serve",
          "make or advance the plan for the current lengths, and give it more slack"};
}

std::optional<DraftTables> makeRoomForDrafts(std::span<const DraftedRequest> requests, const HeldSlots &slots,
                                             Plan &plan) {
  DraftTables tables;
  if (requests.empty())
    return tables;
  const StandIns standIns(requests, plan);
  std::int64_t expected = 0, found = 0; // (query, token of its stand-in) pairs
  tables.held = slots.words;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const DraftedRequest &own = requests[r];
    const HeldSlots::OfRequest &held = slots.requests[r];
    tables.requests.push_back({own.request, own.count, own.firstQuery, own.length, held.mostGain,
                               held.location, held.spread, held.begin});
    tables.firstSlots.push_back(own.location);
    for (int block = 0; held.areAny && block < DraftStandIn::blocks(own.count); ++block) {
      const DraftStandIn standIn = DraftStandIn::of(own.count, block);
      expected += std::int64_t{standIn.tokens()} * standIn.count;
    }
  }
  tables.queryAt.resize(plan.callerIndex.size());
  for (int query = 0; query < plan.queryCount(); ++query)
    tables.queryAt[index(plan.callerIndex[index(query)])] = query;

  const std::vector<abi::Run> former(plan.runs.begin(), plan.runs.end());
  std::vector<abi::Run> runs; // with room for those of drafts
  runs.reserve(former.size());
  std::vector<abi::Item> items = plan.items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    abi::Item &item = items[i];
    const abi::Run *run = former.data() + item.runBegin, *const end = run + item.runCount;
    const std::size_t firstPart = tables.parts.size();
    item.runBegin = static_cast<int>(runs.size());
    item.tokens = 0;
    for (; run != end; ++run) {
      if (const int request = standIns.requestOf(item, *run); request >= 0) {
        tables.parts.push_back(standIns.partOf(item, *run, request));
        found += std::int64_t{run->tokens} * (run->queryEnd - run->queryBegin);
        continue;
      }
      runs.push_back(*run);
      runs.back().begin = item.tokens;
      item.tokens += run->tokens;
    }
    item.runCount = static_cast<int>(runs.size()) - item.runBegin;
    if (tables.parts.size() == firstPart)
      continue;
    assert(item.dealtTiles == 0);
    joinParts(standIns, tables.parts, firstPart);
    tables.items.push_back({static_cast<int>(i), item.runBegin, item.runCount, item.tokens,
                            static_cast<int>(firstPart), static_cast<int>(tables.parts.size() - firstPart),
                            /*spare=*/0, 0});
    int room = 0;
    for (std::size_t p = firstPart; p < tables.parts.size(); ++p)
      room += mostRunsOf(tables.parts[p], slots);
    runs.resize(runs.size() + static_cast<std::size_t>(std::max(room, 1)), abi::Run{});
  }
  if (found != expected)
    return std::nullopt;
  plan.items = std::move(items);
  std::copy(runs.begin(), runs.end(), plan.runs.renew(runs.size()));
  plan.mostRuns = 0;
  plan.leaves.clear();
  plan.tails.clear();
  plan.windowStarts.clear();
  plan.windowHeads.clear();
  if (!slots.standIns.empty())
    plan.countTable(); // without the stand-ins, which lie in no cache
  for (const HeldSlots::OfRequest &own : slots.requests)
    plan.tableTokens = std::max(plan.tableTokens, own.end);
  findSpares(slots, plan, tables);
  return tables;
}

abi::DraftArgs draftArgs(const DraftTables &tables, Plan &plan) {
  abi::DraftArgs args{};
  args.requests = tables.requests.data();
  args.draftItems = tables.items.data();
  args.parts = tables.parts.data();
  args.held = tables.held.data();
  args.queryAt = tables.queryAt.data();
  args.items = plan.items.data();
  args.runs = plan.runs.toChange().data();
  args.callerIndex = plan.callerIndex.data();
  args.queryPos = plan.queryPos.data();
  args.mostRequests = static_cast<int>(tables.requests.size());
  args.mostItems = static_cast<int>(tables.items.size());
  return args;
}

} // namespace deft::plan
