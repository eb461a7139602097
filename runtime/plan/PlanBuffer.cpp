#include "runtime/plan/PlanBuffer.h"

#include "runtime/plan/Deal.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <string>
#include <type_traits>

namespace deft::plan {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

Error damaged(const std::string &what) {
  return Error{ErrorCode::Diagnostics, "the plan buffer is damaged: " + what, ""};
}

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kPlanAlignment - 1) / kPlanAlignment * kPlanAlignment;
}

/// Calls back with each part's vector, in the order of PlanPart. `AnyPlan` is a plan or a const one.
template <typename AnyPlan, typename Callback> void forEachPart(AnyPlan &plan, Callback callback) {
  callback(PlanPart::Items, plan.items);
  if constexpr (std::is_const_v<AnyPlan>)
    callback(PlanPart::Runs, plan.runs);
  else
    callback(PlanPart::Runs, plan.runs.own());
  callback(PlanPart::CallerIndex, plan.callerIndex);
  callback(PlanPart::QueryPos, plan.queryPos);
  callback(PlanPart::MergeQuery, plan.mergeQuery);
  callback(PlanPart::MergeBegin, plan.mergeBegin);
  callback(PlanPart::MergeSlot, plan.mergeSlot);
  callback(PlanPart::Phases, plan.phases);
  callback(PlanPart::Leaves, plan.leaves);
  callback(PlanPart::Tails, plan.tails);
}

} // namespace

void writePlan(const Plan &plan, std::vector<std::byte> &buffer) {
  PlanHeader header{};
  header.magic = PlanHeader::kMagic;
  header.version = PlanHeader::kVersion;
  header.headerBytes = sizeof(PlanHeader);
  header.generation = plan.generation;
  header.structureGeneration = plan.structureGeneration;
  header.readTokens = plan.readTokens;
  header.partialSlots = plan.partialSlots;
  header.grownTokens = plan.grownTokens;
  header.strictChunk = plan.strictChunk;
  header.partition = static_cast<std::int32_t>(plan.partition);
  header.chunkTokens = plan.chunkTokens;
  std::uint64_t end = sizeof(PlanHeader);
  forEachPart(plan, [&](PlanPart part, const auto &values) {
    header.parts[static_cast<std::size_t>(part)] = {end, values.size()};
    end = aligned(end + values.size() * sizeof(values[0]));
  });
  header.bytes = end;

  buffer.resize(end);
  std::memcpy(buffer.data(), &header, sizeof(header));
  std::uint64_t written = sizeof(header);
  const auto zeroTo = [&](std::uint64_t offset) { // what lies between parts is the same every time
    std::memset(buffer.data() + written, 0, offset - written);
    written = offset;
  };
  forEachPart(plan, [&](PlanPart part, const auto &values) {
    zeroTo(header.part(part).offset);
    if (!values.empty())
      std::memcpy(buffer.data() + written, values.data(), values.size() * sizeof(values[0]));
    written += values.size() * sizeof(values[0]);
  });
  zeroTo(end);
}

Result<PlanHeader> readPlanHeader(std::span<const std::byte> buffer) {
  PlanHeader header{};
  if (buffer.size() < sizeof(header))
    return damaged(std::to_string(buffer.size()) + " bytes are no header of " +
                   std::to_string(sizeof(header)));
  std::memcpy(&header, buffer.data(), sizeof(header));
  if (header.magic != PlanHeader::kMagic)
    return Error{ErrorCode::Diagnostics, "this is no plan buffer", ""};
  if (header.version != PlanHeader::kVersion || header.headerBytes != sizeof(header))
    return Error{ErrorCode::Diagnostics,
                 "the plan buffer has version " + std::to_string(header.version) + ", this program reads " +
                     std::to_string(PlanHeader::kVersion),
                 "plan again"};
  if (header.bytes != buffer.size())
    return damaged(std::to_string(buffer.size()) + " bytes of " + std::to_string(header.bytes));
  return header;
}

namespace {

bool isIn(long long begin, long long count, std::size_t size) {
  return begin >= 0 && count >= 0 && begin + count <= static_cast<long long>(size);
}

/// Nothing in the plan points out of it. Returns what does.
const char *findWildIndex(const Plan &plan) {
  const std::size_t queries = plan.callerIndex.size();
  if (plan.queryPos.size() != queries)
    return "positions do not match queries";
  for (const int caller : plan.callerIndex)
    if (!isIn(caller, 1, queries))
      return "a caller's index";
  long long items = 0;
  for (const Plan::Phase &phase : plan.phases) {
    if (phase.itemBegin != items || phase.itemCount < 0)
      return "a phase";
    items += phase.itemCount;
  }
  if (items != static_cast<long long>(plan.items.size()))
    return "the phases";
  for (const abi::Item &item : plan.items) {
    if (item.queryCount < 1 || !isIn(item.queryBegin, item.queryCount, queries) || item.runCount < 1 ||
        !isIn(item.runBegin, item.runCount, plan.runs.size()) || item.partialBegin < -1 ||
        (item.partialBegin >= 0 &&
         !isIn(item.partialBegin, item.queryCount, static_cast<std::size_t>(plan.partialSlots))))
      return "an item";
    long long tokens = 0;
    for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
      const abi::Run &run = plan.runs[static_cast<std::size_t>(r)];
      if (run.begin != tokens || run.tokens < 1 || run.location < 0 || run.queryBegin < 0 ||
          run.queryBegin >= run.queryEnd || run.queryEnd > item.queryCount)
        return "a run";
      tokens += run.tokens;
    }
    if (tokens != item.tokens)
      return "an item's tokens";
    if (item.dealtTiles != 0 &&
        !isDealtRight(item, {plan.runs.data() + item.runBegin, static_cast<std::size_t>(item.runCount)}))
      return "an item's dealt tokens";
  }
  if (plan.mergeBegin.size() != plan.mergeQuery.size() + 1 || plan.mergeBegin.front() != 0 ||
      plan.mergeBegin.back() != static_cast<long long>(plan.mergeSlot.size()) ||
      !std::is_sorted(plan.mergeBegin.begin(), plan.mergeBegin.end()))
    return "the merge map";
  for (const int query : plan.mergeQuery)
    if (!isIn(query, 1, queries))
      return "a merged query";
  for (const int slot : plan.mergeSlot)
    if (!isIn(slot, 1, static_cast<std::size_t>(plan.partialSlots)))
      return "a merged partial";
  for (const Plan::Leaf &leaf : plan.leaves)
    if (leaf.node < 0 || leaf.followBegin > leaf.followEnd ||
        !isIn(leaf.followBegin, leaf.followEnd - leaf.followBegin, queries))
      return "a leaf";
  for (const Plan::Tail &tail : plan.tails)
    if (!isIn(tail.leaf, 1, plan.leaves.size()) || !isIn(tail.item, 1, plan.items.size()) ||
        !isIn(tail.run - plan.items[static_cast<std::size_t>(tail.item)].runBegin, 1,
              static_cast<std::size_t>(plan.items[static_cast<std::size_t>(tail.item)].runCount)))
      return "a tail";
  return nullptr;
}

} // namespace

Result<Plan> readPlan(std::span<const std::byte> buffer) {
  const auto header = readPlanHeader(buffer);
  if (!header)
    return header.error();
  Plan plan;
  plan.generation = header->generation;
  plan.structureGeneration = header->structureGeneration;
  plan.readTokens = header->readTokens;
  plan.partialSlots = header->partialSlots;
  plan.grownTokens = header->grownTokens;
  plan.strictChunk = header->strictChunk;
  if (plan.partialSlots < 0)
    return damaged("fewer than no partials");
  if (header->partition < 0 || header->partition > static_cast<std::int32_t>(spec::Partition::Auto))
    return damaged("no partition has the number " + std::to_string(header->partition));
  plan.partition = static_cast<spec::Partition>(header->partition);
  plan.chunkTokens = header->chunkTokens;

  bool isRight = true;
  std::uint64_t end = sizeof(PlanHeader);
  forEachPart(plan, [&](PlanPart which, auto &values) {
    using Value = typename std::decay_t<decltype(values)>::value_type;
    static_assert(std::is_trivially_copyable_v<Value>);
    const PlanHeader::Part &part = header->part(which);
    isRight = isRight && part.offset >= end && part.offset % kPlanAlignment == 0 &&
              part.offset <= buffer.size() && part.count <= (buffer.size() - part.offset) / sizeof(Value) &&
              part.count <= INT_MAX;
    if (!isRight)
      return;
    values.resize(part.count);
    end = part.offset + part.count * sizeof(Value);
    if (part.count > 0)
      std::memcpy(values.data(), buffer.data() + part.offset, part.count * sizeof(Value));
  });
  if (!isRight)
    return damaged("a part lies outside of it");
  if (const char *wild = findWildIndex(plan))
    return damaged(std::string(wild) + " is out of range");
  plan.countTable();
  return plan;
}

} // namespace deft::plan
