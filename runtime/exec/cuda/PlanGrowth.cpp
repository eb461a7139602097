#include "runtime/exec/cuda/PlanGrowth.h"

#include "runtime/exec/cuda/SmallKernel.h"
#include "runtime/plan/Planner.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

namespace deft::exec {

using support::Result;

namespace {

constexpr int kThreads = 128; ///< as the source asserts
const char *const kEntry = "deft_grow_plan";
const char *const kSource = R"(// deft_grow_plan: lets a plan on the device follow lengths that are there.
#include "deft/plan_growth.cuh"

static_assert(deft::PlanGrowth::kThreads == 128, "host and device disagree on the block");

extern "C" __global__ void __launch_bounds__(deft::PlanGrowth::kThreads)
deft_grow_plan(const __grid_constant__ deft::abi::GrowArgs args) {
  deft::PlanGrowth(args).grow();
}
)";

} // namespace

int GrowthRules::slackAt(int end) const {
  if (slack > 0)
    return slack;
  const int inPage = pageSize > 0 ? (pageSize - end % pageSize) % pageSize : 0;
  return std::clamp(inPage, kLeastSlack,
                    plan::Planner::kMostGrowth); // what a mask shows farther on is not planned
}

/// Which of the next tokens of a leaf that several ranks hold lie here, as the kernel reads it; else 0.
static unsigned heldNext(const plan::Plan::Leaf &leaf) {
  constexpr std::uint64_t kRead = (std::uint64_t{1} << 31) - 1;
  return leaf.canGrow == 3
             ? static_cast<unsigned>(leaf.heldNext >> (leaf.tokens - leaf.plannedTokens) & kRead)
             : 0;
}

/// How many tokens such a leaf may gain until its run has gained more than `mostHeld`.
static int gainThatHolds(const plan::Plan::Leaf &leaf, int mostHeld, int slack) {
  constexpr int kMostRead = 31;
  int gain = 0;
  while (gain < (slack > 0 ? std::min(slack, kMostRead) : kMostRead) &&
         std::popcount(heldNext(leaf) & ((1u << (gain + 1)) - 1)) <= mostHeld)
    ++gain;
  return gain;
}

GrowthTables growthTables(const plan::Plan &plan, const GrowthRules &rules) {
  GrowthTables tables;
  for (std::size_t q = 0; q < plan.callerIndex.size(); ++q) {
    tables.leaves.push_back({plan.callerIndex[q], plan.queryPos[q] + 1, 0, 0});
    tables.queries.push_back({static_cast<int>(q), plan.queryPos[q]});
  }
  tables.runs.reserve(plan.runs.size());
  for (const abi::Run &run : plan.runs)
    tables.runs.push_back({-1, run.tokens});
  std::vector<int> left(plan.leaves.size()); // that a leaf may gain; -1: nobody has looked
  std::fill(left.begin(), left.end(), -1);
  const auto mostOf = [](const plan::Plan::Leaf &leaf) {
    return plan::Planner::kMostGrowth - (leaf.tokens - leaf.plannedTokens);
  };
  for (const plan::Plan::Tail &tail : plan.tails) {
    const plan::Plan::Leaf &leaf = plan.leaves[static_cast<std::size_t>(tail.leaf)];
    if (leaf.canGrow == 0 || leaf.followEnd - leaf.followBegin != 1)
      continue;
    const abi::Run &run = plan.runs[static_cast<std::size_t>(tail.run)];
    int most = rules.slackAt(run.location + run.tokens);
    if (plan.strictChunk > 0) // and then a leaf is alone at the end of its chunk
      most = std::min(most, plan.strictChunk - plan.items[static_cast<std::size_t>(tail.item)].tokens);
    most = std::min(leaf.canGrow == 3 ? gainThatHolds(leaf, most, rules.slack) : most, mostOf(leaf));
    int &least = left[static_cast<std::size_t>(tail.leaf)];
    least = std::max(least < 0 ? most : std::min(least, most), 0);
    if (leaf.canGrow == 1 || heldNext(leaf) != 0)
      tables.runs[static_cast<std::size_t>(tail.run)].leaf = leaf.followBegin;
  }
  for (std::size_t l = 0; l < left.size(); ++l) { // those that grow in another rank's cache
    const plan::Plan::Leaf &leaf = plan.leaves[l];
    if (leaf.canGrow == 2 && leaf.followEnd - leaf.followBegin == 1)
      left[l] =
          std::max(std::min(rules.slack > 0 ? rules.slack : plan::Planner::kMostGrowth, mostOf(leaf)), 0);
  }
  for (std::size_t l = 0; l < left.size(); ++l)
    if (left[l] > 0) {
      abi::GrowingLeaf &own = tables.leaves[static_cast<std::size_t>(plan.leaves[l].followBegin)];
      own.mostGain = left[l];
      own.reserved = static_cast<int>(heldNext(plan.leaves[l]));
    }
  for (const plan::Plan::Tail &tail : plan.tails)
    if (left[static_cast<std::size_t>(tail.leaf)] > 0 &&
        (tables.items.empty() || tables.items.back() != tail.item))
      tables.items.push_back(tail.item);
  return tables;
}

void writeGrowth(const plan::Plan &plan, const GrowthTables &tables, const PlanRoom &room,
                 const PlanSections &sections, std::byte *to) {
  const auto copy = [&](std::size_t section, const auto &values) {
    if (!values.empty())
      std::memcpy(to + section, values.data(), values.size() * sizeof(values[0]));
  };
  copy(sections.growingLeaves, tables.leaves);
  copy(sections.grownRuns, tables.runs);
  auto *const queries = reinterpret_cast<abi::Grown *>(to + sections.grownQueries);
  std::fill(queries, queries + room.queries, abi::Grown{-1, 0});
  copy(sections.grownQueries, tables.queries);
  auto *item = reinterpret_cast<int *>(to + sections.growingItems);
  std::fill(item, item + room.allItems(), -1);
  for (const int own : tables.items)
    *item++ = itemOnDevice(plan, sections, own);
}

const char *PlanGrowth::source() { return kSource; }

Result<PlanGrowth> PlanGrowth::create(const std::shared_ptr<device::Device> &device, GrowthRules rules) {
  auto kernel = loadSmallKernel(device, kEntry, kSource, kThreads);
  if (!kernel)
    return kernel.error();
  auto mark = DeviceMark::create(device, "the mark of lengths that are not served");
  if (!mark)
    return mark.error();
  return PlanGrowth(std::move(*kernel), std::move(*mark), rules);
}

Result<void> PlanGrowth::launch(const int *lengths, const PlanRoom &room, const PlanSections &sections,
                                std::byte *plan, cu::Stream stream) const {
  abi::GrowArgs args{};
  args.lengths = lengths;
  args.leaves = reinterpret_cast<const abi::GrowingLeaf *>(plan + sections.growingLeaves);
  args.growingItems = reinterpret_cast<const int *>(plan + sections.growingItems);
  args.grownRuns = reinterpret_cast<const abi::Grown *>(plan + sections.grownRuns);
  args.grownQueries = reinterpret_cast<const abi::Grown *>(plan + sections.grownQueries);
  args.items = reinterpret_cast<abi::Item *>(plan + sections.items);
  args.runs = reinterpret_cast<abi::Run *>(plan + sections.runs);
  args.queryPos = reinterpret_cast<int *>(plan + sections.queryPos);
  args.mostItems = room.allItems();
  args.mostQueries = room.queries;
  args.unserved = mark_.onDevice();
  const auto threads = std::max<std::int64_t>(std::int64_t{32} * args.mostItems, args.mostQueries);
  void *params[] = {&args};
  return kernel_.launch(static_cast<unsigned>((threads + kThreads - 1) / kThreads), params, stream);
}

std::optional<support::Error> PlanGrowth::takeFault() const {
  const auto unserved = mark_.takeNoted();
  if (!unserved)
    return {};
  return support::Error{support::ErrorCode::Usage,
                        "query " + std::to_string(unserved->which) + " saw " +
                            std::to_string(unserved->value) +
                            " tokens on the device, which its plan does not serve",
                        "make or advance the plan for the current lengths, and give it more slack"};
}

} // namespace deft::exec
