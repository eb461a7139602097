#include "runtime/exec/cuda/PlanGrowth.h"

#include "compiler/target/Target.h"
#include "runtime/module_cache/CompileKernels.h"
#include "runtime/plan/Planner.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

namespace deft::exec {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

constexpr int kThreads = 128; ///< as deft::PlanGrowth has it
const char *const kEntry = "deft_grow_plan";
const char *const kSource = R"(// deft_grow_plan: lets a plan on the device follow lengths that are there.
#include "deft/plan_growth.cuh"

extern "C" __global__ void __launch_bounds__(deft::PlanGrowth::kThreads)
deft_grow_plan(const __grid_constant__ deft::abi::GrowArgs args) {
  deft::PlanGrowth(args).grow();
}
)";

/// The one request whose one query follows the leaf; -1: there is none, or there are several.
int requestOf(const plan::Plan &plan, const plan::Plan::Leaf &leaf, std::span<const int> requests,
              const std::vector<int> &queriesOf) {
  if (leaf.followEnd - leaf.followBegin != 1)
    return -1;
  const int query = plan.callerIndex[static_cast<std::size_t>(leaf.followBegin)];
  if (requests.empty())
    return query;
  const int request = requests[static_cast<std::size_t>(query)];
  return queriesOf[static_cast<std::size_t>(request)] == 1 ? request : -1;
}

std::vector<int> countQueries(std::span<const int> requests) {
  std::vector<int> counts;
  for (const int request : requests) {
    counts.resize(std::max(counts.size(), static_cast<std::size_t>(request) + 1));
    ++counts[static_cast<std::size_t>(request)];
  }
  return counts;
}

/// What the rules leave to a leaf that ends before this place of the cache.
int slackAt(int end, const GrowthRules &rules) {
  if (rules.slack > 0)
    return rules.slack;
  const int inPage = rules.pageSize > 0 ? (rules.pageSize - end % rules.pageSize) % rules.pageSize : 0;
  return std::max(inPage, GrowthRules::kLeastSlack);
}

std::atomic<std::uint64_t> &word(const device::HostMemory &mark) {
  return *mark.as<std::atomic<std::uint64_t>>();
}

} // namespace

std::vector<abi::GrowingLeaf> growingLeaves(const plan::Plan &plan, const GrowthRules &rules,
                                            std::span<const int> requests) {
  const std::vector<int> queriesOf = countQueries(requests);
  std::vector<abi::GrowingLeaf> leaves;
  leaves.reserve(plan.leaves.size());
  for (const plan::Plan::Leaf &leaf : plan.leaves) {
    const bool isFollowed = leaf.followBegin < leaf.followEnd;
    const int own = requestOf(plan, leaf, requests, queriesOf);
    // Where it cannot grow, its first query tells whether the length is what was planned.
    const int query = isFollowed ? plan.callerIndex[static_cast<std::size_t>(leaf.followBegin)] : 0;
    const int request = own >= 0 ? own : requests.empty() ? query : requests[static_cast<std::size_t>(query)];
    const int length = isFollowed ? plan.queryPos[static_cast<std::size_t>(leaf.followEnd) - 1] + 1 : 0;
    const bool grows = own >= 0 && leaf.canGrow != 0;
    const int left = plan::Planner::kMostGrowth - (leaf.tokens - leaf.plannedTokens);
    leaves.push_back({request, length, grows ? std::max(left, 0) : 0, 0});
  }
  std::vector<bool> hasTail(leaves.size());
  for (const plan::Plan::Tail &tail : plan.tails) {
    const abi::Item &item = plan.items[static_cast<std::size_t>(tail.item)];
    const abi::Run &run = plan.runs[static_cast<std::size_t>(tail.run)];
    abi::GrowingLeaf &leaf = leaves[static_cast<std::size_t>(tail.leaf)];
    leaf.mostGain = std::min(leaf.mostGain, slackAt(run.location + run.tokens, rules));
    if (plan.strictChunk > 0) // and then a leaf is alone at the end of its chunk
      leaf.mostGain = std::min(leaf.mostGain, std::max(plan.strictChunk - item.tokens, 0));
    hasTail[static_cast<std::size_t>(tail.leaf)] = true;
  }
  for (std::size_t l = 0; l < leaves.size(); ++l)
    if (!hasTail[l])
      leaves[l].mostGain = 0;
  return leaves;
}

void writeGrowth(const plan::Plan &plan, const std::vector<abi::GrowingLeaf> &leaves, const PlanRoom &room,
                 const PlanSections &sections, std::byte *to) {
  if (!leaves.empty())
    std::memcpy(to + sections.growingLeaves, leaves.data(), leaves.size() * sizeof(abi::GrowingLeaf));
  auto *const runs = reinterpret_cast<abi::Grown *>(to + sections.grownRuns);
  for (std::size_t r = 0; r < plan.runs.size(); ++r)
    runs[r] = {-1, plan.runs[r].tokens};
  auto *const queries = reinterpret_cast<abi::Grown *>(to + sections.grownQueries);
  std::fill(queries, queries + room.queries, abi::Grown{-1, 0});
  for (std::size_t l = 0; l < plan.leaves.size(); ++l)
    for (int q = plan.leaves[l].followBegin; q < plan.leaves[l].followEnd; ++q)
      queries[q] = {static_cast<int>(l), plan.queryPos[static_cast<std::size_t>(q)]};
  auto *item = reinterpret_cast<int *>(to + sections.growingItems);
  std::fill(item, item + room.allItems(), -1);
  std::size_t phase = 0;
  int last = -1;
  for (const plan::Plan::Tail &tail : plan.tails) {
    runs[tail.run].leaf = tail.leaf;
    if (tail.item == last || leaves[static_cast<std::size_t>(tail.leaf)].mostGain == 0)
      continue;
    last = tail.item;
    while (tail.item >= plan.phases[phase].itemBegin + plan.phases[phase].itemCount)
      ++phase;
    while (tail.item < plan.phases[phase].itemBegin)
      --phase;
    *item++ = sections.itemBegin[phase] + tail.item - plan.phases[phase].itemBegin;
  }
}

const char *PlanGrowth::source() { return kSource; }

Result<PlanGrowth> PlanGrowth::create(const std::shared_ptr<device::Device> &device, GrowthRules rules) {
  const device::DeviceFacts &facts = device->facts();
  const target::Target *target = target::targetForDevice(facts.major, facts.minor);
  if (!target)
    return Error{ErrorCode::Environment, facts.name + " is too old", "compute capability 8.0 is the least"};
  const auto nvrtc = nvrtc::Nvrtc::load();
  if (!nvrtc)
    return nvrtc.error();
  const auto cache = module_cache::CubinCache::openDefault();
  auto compiled = module_cache::compileKernel(cache.get(), **nvrtc, kEntry, kSource, target->arch);
  if (!compiled)
    return compiled.error();
  auto kernel = device::Kernel::load(device, compiled->cubin, kEntry, kThreads, 0);
  if (!kernel)
    return kernel.error();
  auto mark = std::make_shared<device::HostMemory>(device);
  if (auto reserved = mark->reserve(sizeof(std::uint64_t), "the mark of lengths that are not served");
      !reserved)
    return reserved.error();
  return PlanGrowth(std::move(*kernel), std::move(mark), rules);
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
  args.unserved = mark_->onDevice<unsigned long long>();
  const int threads = std::max(32 * args.mostItems, args.mostQueries);
  void *params[] = {&args};
  return kernel_.launch(static_cast<unsigned>((threads + kThreads - 1) / kThreads), params, stream);
}

std::optional<PlanGrowth::Unserved> PlanGrowth::takeUnserved() {
  const std::uint64_t seen = word(*mark_).exchange(0, std::memory_order_acq_rel);
  if (seen == 0)
    return {};
  return Unserved{static_cast<int>(seen & 0xffffffff) - 1, static_cast<int>(seen >> 32)};
}

} // namespace deft::exec
