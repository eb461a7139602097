#include "tuner/sparse/CudaSparseMachine.h"

#include "compiler/support/InOrder.h"
#include "runtime/plan/Planner.h"
#include "runtime/reference/Check.h"
#include "tuner/sparse/SparseLists.h"

#include <algorithm>

namespace deft::sparse {

using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

constexpr int kMostRuns = 11, kFewestRuns = 3;
constexpr double kMostUs = 1500;       ///< limit for all runs of one measurement together
constexpr int kWakingRuns = 64;        ///< a GPU that was idle for longer is slower for a while
constexpr std::size_t kMostCuts = 12;  ///< of a tile, by their costs; other cuts are much slower
constexpr std::size_t kMostPlans = 48; ///< at a time: each has memory for the worth of tokens
constexpr long long kMostCheckedPairs = 1LL << 20;

std::string tileName(const config::PhaseConfig &tile) {
  return std::to_string(tile.tileKv) + "x" + std::to_string(tile.stages) + "x" + std::to_string(tile.warps);
}

} // namespace

Result<std::unique_ptr<CudaSparseMachine>>
CudaSparseMachine::open(std::shared_ptr<device::Device> device, const spec::Variant &variant,
                        std::vector<exec::ParamValue> params, const package::KernelSet &base,
                        const std::vector<SparseKernel> &others, const std::vector<Lists> &lists,
                        const Options &options, std::vector<std::string> &notes) {
  measure::Work work;
  work.variant = variant;
  work.params = std::move(params);
  work.seed = options.seed;
  work.threads = options.threads;
  work.sharesCache = true;
  for (const Lists &one : lists) {
    auto tree = treeOf(variant, one);
    if (!tree)
      return tree.error();
    work.classes.push_back({std::to_string(one.budget) + " " + std::to_string(one.queries), {*tree}});
  }
  auto timer = device::Timer::create(device);
  if (!timer)
    return timer.error();
  std::unique_ptr<CudaSparseMachine> machine(
      new CudaSparseMachine(std::move(device), std::move(work), std::move(*timer), lists));

  package::KernelSet set = base;
  const auto load = [&](const SparseKernel &one) -> Result<void> {
    set.selecting->sparsePhase = one.phase;
    set.selecting->sparse = one.kernel;
    auto loaded = exec::CudaKernels::load(machine->device_, variant, set);
    if (!loaded)
      return loaded.error();
    machine->tiles_.push_back(one.phase);
    machine->kernels_.push_back(std::move(*loaded));
    return {};
  };
  if (auto loaded = load({base.selecting->sparsePhase, base.selecting->sparse}); !loaded)
    return loaded.error();
  const auto leaveOut = [&](const config::PhaseConfig &tile, const std::string &why) {
    notes.push_back("tile " + tileName(tile) + " is left out: " + why);
  };
  for (const SparseKernel &other : others)
    if (auto loaded = load(other); !loaded)
      leaveOut(other.phase, loaded.error().message);

  if (lists.empty())
    return machine;
  if (auto opened = machine->open(lists.front()); !opened)
    return opened.error();
  for (std::size_t tile = machine->tiles_.size(); tile-- > 0;) {
    const auto fault = machine->faultOf(tile);
    if (!fault)
      return fault.error();
    if (fault->empty())
      continue;
    if (tile == 0)
      return Error{ErrorCode::Internal, "the kernel that reads lists is wrong: " + *fault, ""};
    leaveOut(machine->tiles_[tile], *fault);
    machine->tiles_.erase(machine->tiles_.begin() + static_cast<std::ptrdiff_t>(tile));
    machine->kernels_.erase(machine->kernels_.begin() + static_cast<std::ptrdiff_t>(tile));
  }
  machine->candidates_.clear(); // it is indexed by tiles, whose numbers change
  return machine;
}

Result<void> CudaSparseMachine::open(const Lists &lists) {
  candidates_.clear();
  const auto found = std::find(lists_.begin(), lists_.end(), lists);
  if (found == lists_.end())
    return Error{ErrorCode::Internal, "lists that were not announced", ""};
  now_ = lists;
  const auto isNew = pool_.open(work_.classes[static_cast<std::size_t>(found - lists_.begin())]);
  if (!isNew)
    return isNew.error();
  if (!isLoaded_ || *isNew)
    if (auto loaded = inputs_.load(pool_.inputs()); !loaded)
      return loaded;
  isLoaded_ = true;
  auto plan = plan::makePlan(pool_.trees().front(), measure::factsOf(work_, config::DeviceKind::Gpu),
                             kernels_.front()->config(), kernels_.front()->blocksAtOnce());
  if (!plan)
    return plan.error();
  plan_ = std::move(*plan);
  const auto cut = cuts(0);
  if (!cut)
    return cut.error();
  const auto first = candidate(0, cut->front());
  if (!first)
    return first.error();
  const auto woken = timer_.time(
      [&] { return (*first)->plan->runSparse(*kernels_[0], inputs_.pointers(), device_->stream()); },
      {kWakingRuns, /*coldL2=*/true});
  return woken ? Result<void>() : woken.error();
}

Result<std::vector<int>> CudaSparseMachine::cuts(std::size_t tile) {
  const std::vector<config::SparseCut> none;
  const auto selecting = exec::PlanSelecting::create(*kernels_[tile], now_.budget, /*isInvariant=*/false,
                                                     /*listOverlap=*/0, &none);
  if (!selecting)
    return selecting.error();
  std::vector<int> tokens;
  for (const exec::SparseSplit::Cut &cut : selecting->split().cuts(now_.queries))
    if (tokens.size() < kMostCuts)
      tokens.push_back(cut.itemTokens);
  return tokens;
}

Result<CudaSparseMachine::Candidate *> CudaSparseMachine::candidate(std::size_t tile, int itemTokens) {
  if (const auto known = candidates_.find({tile, itemTokens}); known != candidates_.end())
    return &known->second;
  if (candidates_.size() >= kMostPlans)
    candidates_.clear();
  exec::CudaPlanOptions options;
  options.budget = now_.budget;
  options.sparseCuts = {{now_.budget, now_.queries, itemTokens}};
  auto plan = exec::CudaPlan::create(kernels_[tile], options);
  if (!plan)
    return plan.error();
  exec::CudaPlan &made = **plan;
  const auto stream = device_->stream();
  auto done = support::inOrder([&] { return made.setRoom(made.roomOf(plan_)); },
                               [&] { return made.write(plan_); }, [&] { return made.upload(stream); },
                               [&] { return made.runSelecting(*kernels_[tile], inputs_.pointers(), stream); },
                               [&] { return device_->synchronize("a run that selects failed"); });
  if (!done)
    return done.error();
  Candidate &own = candidates_[{tile, itemTokens}];
  own.plan = std::move(*plan);
  return &own;
}

Result<double> CudaSparseMachine::time(std::size_t tile, int itemTokens) {
  const auto found = candidate(tile, itemTokens);
  if (!found)
    return found.error();
  Candidate &own = **found;
  const auto enqueue = [&] {
    return own.plan->runSparse(*kernels_[tile], inputs_.pointers(), device_->stream());
  };
  const int runs = std::clamp(static_cast<int>(kMostUs / std::max(own.lastUs, 1.0)), kFewestRuns, kMostRuns);
  const auto timing = timer_.time(enqueue, {runs, /*coldL2=*/true});
  if (!timing)
    return timing.error();
  own.lastUs = timing->medianUs;
  return timing->medianUs;
}

Result<std::string> CudaSparseMachine::faultOf(std::size_t tile) {
  const auto cut = cuts(tile);
  if (!cut)
    return cut.error();
  const auto found = candidate(tile, cut->front());
  if (!found)
    return found.error();
  exec::CudaPlan &plan = *(*found)->plan;
  const auto stream = device_->stream();
  exec::Outputs outputs;
  exec::Selection selection;
  auto done = support::inOrder([&] { return inputs_.clearOutputs(now_.queries); },
                               [&] { return plan.runSparse(*kernels_[tile], inputs_.pointers(), stream); },
                               [&] { return device_->synchronize("a sparse layer failed"); },
                               [&] { return inputs_.read(now_.queries, outputs); },
                               [&] { return plan.readLists(selection, stream); });
  if (!done)
    return done.error();
  reference::CheckOptions options;
  options.threads = work_.threads;
  options.mostRowTokens = kMostCheckedPairs;
  options.selection = &selection;
  const auto report =
      reference::check(work_.variant, pool_.trees().front(), pool_.inputs(), outputs, options);
  return report.passed() ? std::string() : reference::explainFailure(report);
}

} // namespace deft::sparse
