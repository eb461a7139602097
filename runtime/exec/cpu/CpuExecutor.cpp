#include "runtime/exec/cpu/CpuExecutor.h"

#include "runtime/exec/cpu/Grow.h"
#include "runtime/exec/cpu/SelectJob.h"
#include "runtime/exec/cpu/SparseRunner.h"
#include "runtime/exec/cpu/Team.h"
#include "runtime/exec/cpu/UnitRunner.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace deft::exec {

using support::Error;
using support::ErrorCode;

/// The memory of one running step.
struct CpuExecutor::Scratch {
  explicit Scratch(std::size_t threads)
      : runners(threads), sparse{std::vector<SparseRunner>(threads), {}, {}, {}}, keys(threads),
        loads(threads) {}

  std::vector<float> partialOut, partialLse;
  std::vector<UnitRunner> runners; ///< one for each thread
  SparseScratch sparse;
  Selection given; ///< lists given by a caller
  plan::Paths paths;
  WorthTable worth;
  std::vector<std::vector<std::uint64_t>> keys; ///< one for each thread
  std::vector<double> loads;                    ///< one for each thread
  bool taken = false;                           ///< guarded by the executor's mutex
};

namespace {

/// All units of a step, then its merges. Each free thread takes the next one.
class StepJob final : public Team::Job {
public:
  /// Keeps the KV heads of an item together while threads stay evenly busy. `loads` is scratch memory.
  StepJob(const Step &step, std::vector<UnitRunner> &runners, std::vector<double> &loads)
      : step_(step), runners_(runners), items_(static_cast<int>(step.plan.items.size())),
        merges_(static_cast<int>(step.plan.mergeQuery.size())) {
    const int kvHeads = step.variant.kvHeads, most = mostHeads(step);
    for (int split = (kvHeads + most - 1) / most;; split *= 2) {
      heads_ = std::max((kvHeads + split - 1) / split, 1);
      unitsPerItem_ = (kvHeads + heads_ - 1) / heads_;
      if (heads_ == 1 || isEven(loads))
        break;
    }
    units_ = items_ * unitsPerItem_;
    for (UnitRunner &runner : runners)
      runner.prepare(step, heads_);
  }

  /// As many helpers as are worth waking, which costs the caller some microseconds for each.
  int helpers() const {
    constexpr double kLeastNs = 10'000, kFlopsPerNs = 60, kBytesPerNs = 20; // of one recent core, about
    double pairs = 0, tokens = 0;
    for (const abi::Item &item : step_.plan.items) {
      pairs += static_cast<double>(item.tokens) * item.queryCount;
      tokens += item.tokens;
    }
    const double flops = pairs * step_.variant.queryHeads * step_.variant.tensors.pairFlops();
    const double bytes = tokens * step_.variant.kvHeads * step_.variant.tensors.cacheBytes();
    const double worth = std::max(flops / kFlopsPerNs, bytes / kBytesPerNs) / kLeastNs;
    return static_cast<int>(std::min(worth, static_cast<double>(units_ - 1)));
  }

  void run(int slot) noexcept override {
    UnitRunner &runner = runners_[static_cast<std::size_t>(slot)];
    // Items are sorted heaviest first, so threads that take one after the other end together.
    for (int unit = nextUnit_++; unit < units_; unit = nextUnit_++) {
      const int head = unit % unitsPerItem_ * heads_;
      runner.attend(step_.plan.items[static_cast<std::size_t>(unit / unitsPerItem_)], head,
                    std::min(head + heads_, step_.variant.kvHeads));
      if (++unitsDone_ == units_)
        unitsDone_.notify_all();
    }
    if (merges_ == 0 && slot != 0)
      return;
    for (int done = unitsDone_; done < units_; done = unitsDone_)
      unitsDone_.wait(done);
    for (int merge = nextMerge_++; merge < merges_; merge = nextMerge_++)
      runner.merge(merge);
  }

private:
  /// Whether threads that take unit after unit would end at about the same time.
  bool isEven(std::vector<double> &loads) const {
    constexpr double kMostOverMean = 1.1;
    const auto threads = static_cast<int>(runners_.size());
    if (threads == 1 || items_ >= 32 * threads)
      return true;
    std::fill(loads.begin(), loads.end(), 0.0);
    double all = 0;
    for (const abi::Item &item : step_.plan.items) {
      // With few rows, memory is the limit; with many, arithmetic.
      const double cost = item.tokens * std::max(10.0, 1.0 * item.queryCount * step_.variant.ratio());
      for (int unit = 0; unit < unitsPerItem_; ++unit)
        *std::min_element(loads.begin(), loads.end()) += cost;
      all += cost * unitsPerItem_;
    }
    return *std::max_element(loads.begin(), loads.end()) <= kMostOverMean * all / threads;
  }

  /// The number of heads for which two blocks of tokens (the current one and the next) fill half of a small
  /// second-level cache.
  static int mostHeads(const Step &step) {
    constexpr int kBlockBytes = 256 << 10;
    int tokens = 1;
    for (const abi::Item &item : step.plan.items)
      tokens = std::max(tokens, TokenBlocks::mostTokens(step.plan, item, step.variant.ratio(), step.kernel));
    const int headBytes = tokens * step.variant.tensors.cacheBytes();
    return std::max(kBlockBytes / headBytes, 1);
  }

  const Step &step_;
  std::vector<UnitRunner> &runners_;
  const int items_, merges_;
  int heads_ = 1, unitsPerItem_ = 1, units_ = 0; ///< KV heads of a unit; units of an item, of the step
  std::atomic<int> nextUnit_ = 0, unitsDone_ = 0, nextMerge_ = 0;
};

} // namespace

struct CpuExecutor::State {
  explicit State(Team someTeam) : team(std::move(someTeam)) {}

  /// The returned object gives the memory back at the end of the step, even if memory runs out in it.
  auto take() {
    const auto giveBack = [this](Scratch *scratch) {
      const std::lock_guard lock(mutex);
      scratch->taken = false;
    };
    const std::lock_guard lock(mutex);
    auto free =
        std::find_if(scratches.begin(), scratches.end(), [](const auto &scratch) { return !scratch->taken; });
    if (free == scratches.end())
      free = scratches.insert(free, std::make_unique<Scratch>(static_cast<std::size_t>(team.helpers()) + 1));
    (*free)->taken = true;
    return std::unique_ptr<Scratch, decltype(giveBack)>(free->get(), giveBack);
  }

  Team team;
  std::mutex mutex;
  std::vector<std::unique_ptr<Scratch>> scratches; ///< as many as steps ever ran at once
};

CpuExecutor::CpuExecutor(std::unique_ptr<State> state) : state_(std::move(state)) {}
CpuExecutor::CpuExecutor(CpuExecutor &&) noexcept = default;
CpuExecutor &CpuExecutor::operator=(CpuExecutor &&) noexcept = default;
CpuExecutor::~CpuExecutor() = default;

support::Result<CpuExecutor> CpuExecutor::create(int threads) {
  if (threads <= 0)
    threads = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
  auto team = Team::create(threads - 1);
  if (!team)
    return team.error();
  return CpuExecutor(std::make_unique<State>(std::move(*team)));
}

int CpuExecutor::threads() const { return state_->team.helpers() + 1; }

void CpuExecutor::poison() {
  for (const auto &scratch : state_->scratches)
    for (std::vector<float> *partials : {&scratch->partialOut, &scratch->partialLse})
      std::fill(partials->begin(), partials->end(), std::numeric_limits<float>::quiet_NaN());
}

namespace {

support::Result<void> checkKernel(const CpuKernel &kernel, const spec::Variant &variant) {
  if (!kernel)
    return Error{ErrorCode::Internal, "no CPU kernel of " + variant.called() + " is loaded", ""};
  if (const std::string difference = differenceOf(*kernel, variant); !difference.empty())
    return Error{ErrorCode::Internal, "the CPU kernel is not one of " + variant.called() + ": " + difference,
                 ""};
  return {};
}

} // namespace

support::Result<void> CpuExecutor::run(const CpuKernel &kernel, const spec::Variant &variant,
                                       const plan::Plan &plan, const InputView &inputs,
                                       const OutputView &outputs) {
  if (auto checked = checkKernel(kernel, variant); !checked)
    return checked;
  const auto scratch = state_->take();
  attend(*scratch, *kernel, variant, plan, inputs, outputs, nullptr);
  return {};
}

support::Result<void> CpuExecutor::runSelecting(const CpuKernel &kernel, const spec::Variant &variant,
                                                const plan::Plan &plan, const InputView &inputs,
                                                const OutputView &outputs, int budget, Selection &selection,
                                                plan::Paths &paths) {
  if (auto checked = checkKernel(kernel, variant); !checked)
    return checked;
  if (!variant.select)
    return Error{ErrorCode::Internal, variant.called() + " selects nothing", ""};
  paths.read(plan);
  if (const int query = paths.firstAmbiguous(); query >= 0)
    return Error{ErrorCode::Usage,
                 "query " + std::to_string(query) +
                     " sees several tokens at one position, and lists name tokens by their positions",
                 "where drafts have depths, these rise from each draft to those below it"};
  selection.resize(plan.queryCount(), variant.lists(), budget);
  const auto scratch = state_->take();
  scratch->worth.reset(plan.queryCount(), variant.worthGroups(), paths.longest());
  attend(*scratch, *kernel, variant, plan, inputs, outputs, &scratch->worth);
  SelectJob job(*variant.select, paths, scratch->worth, selection, scratch->keys);
  state_->team.run(job.helpers(), job);
  return {};
}

support::Result<void> CpuExecutor::runSparse(const CpuKernel &kernel, const spec::Variant &variant,
                                             const Selection &selection, const plan::Paths &paths,
                                             const InputView &inputs, const OutputView &outputs) {
  if (auto checked = checkKernel(kernel, variant); !checked)
    return checked;
  if (!variant.select || selection.lists != variant.lists() || selection.queries != paths.queryCount())
    return Error{ErrorCode::Internal, "the lists are not those of " + variant.called(), ""};
  const auto scratch = state_->take();
  attendLists(*scratch, *kernel, variant, selection, paths, inputs, outputs);
  return {};
}

support::Result<void> CpuExecutor::runSparse(const CpuKernel &kernel, const spec::Variant &variant,
                                             const GivenLists &lists, const plan::Plan &plan,
                                             const InputView &inputs, const OutputView &outputs) {
  if (auto checked = checkKernel(kernel, variant); !checked)
    return checked;
  if (!variant.readsGivenLists() || lists.queries != plan.queryCount())
    return Error{ErrorCode::Internal, "the lists are not those of " + variant.called(), ""};
  const auto scratch = state_->take();
  scratch->given.take(lists);
  scratch->paths.read(plan);
  attendLists(*scratch, *kernel, variant, scratch->given, scratch->paths, inputs, outputs);
  return {};
}

void CpuExecutor::attendLists(Scratch &scratch, const abi::CpuKernel &kernel, const spec::Variant &variant,
                              const Selection &selection, const plan::Paths &paths, const InputView &inputs,
                              const OutputView &outputs) {
  const SparseStep step{kernel, variant, selection, paths, inputs, outputs};
  SparseJob job(step, scratch.sparse);
  state_->team.run(job.helpers(), job);
}

void CpuExecutor::attend(Scratch &scratch, const abi::CpuKernel &kernel, const spec::Variant &variant,
                         const plan::Plan &plan, const InputView &inputs, const OutputView &outputs,
                         WorthTable *worth) {
  const auto partialRows =
      static_cast<std::size_t>(plan.partialSlots) * static_cast<std::size_t>(variant.queryHeads);
  growTo(scratch.partialOut, partialRows * static_cast<std::size_t>(variant.tensors.out.dim));
  growTo(scratch.partialLse, partialRows);
  const Step step{
      kernel, variant, plan, inputs, outputs, scratch.partialOut.data(), scratch.partialLse.data(), worth};
  // Allocates before the threads start: jobs do not allocate, so they cannot throw.
  StepJob job(step, scratch.runners, scratch.loads);
  state_->team.run(job.helpers(), job);
}

support::Result<void> CpuExecutor::run(const CpuKernel &kernel, const spec::Variant &variant,
                                       const plan::Plan &plan, const Inputs &inputs, Outputs &outputs) {
  const auto rows =
      static_cast<std::size_t>(inputs.queryCount) * static_cast<std::size_t>(variant.queryHeads);
  outputs.out.assign(rows * static_cast<std::size_t>(variant.tensors.out.dim), 0xffff); // NaN in both dtypes
  outputs.lse.clear();
  if (variant.withLse)
    outputs.lse.assign(rows, std::numeric_limits<float>::quiet_NaN());
  const std::vector<abi::ParamSlot> params = inputs.paramSlots(variant);
  return run(kernel, variant, plan, InputView::of(inputs, variant, params),
             OutputView{outputs.out.data(), variant.withLse ? outputs.lse.data() : nullptr});
}

support::Result<void> runCpu(const CpuKernel &kernel, const spec::Variant &variant, const plan::Plan &plan,
                             const InputView &inputs, const OutputView &outputs, int threads) {
  auto executor = CpuExecutor::create(std::max(threads, 1));
  if (!executor)
    return executor.error();
  return executor->run(kernel, variant, plan, inputs, outputs);
}

support::Result<void> runCpu(const CpuKernel &kernel, const spec::Variant &variant, const plan::Plan &plan,
                             const Inputs &inputs, Outputs &outputs, int threads) {
  auto executor = CpuExecutor::create(std::max(threads, 1));
  if (!executor)
    return executor.error();
  return executor->run(kernel, variant, plan, inputs, outputs);
}

} // namespace deft::exec
