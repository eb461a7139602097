#include "runtime/exec/cpu/CpuExecutor.h"
#include "tuner/measure/Machine.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <unistd.h>

#ifdef __x86_64__
#include <emmintrin.h>
#endif

namespace deft::measure {

using support::Result;

namespace {

/// Removes a run's inputs from the caches: between two steps of one layer, a model reads all other layers.
/// Small inputs are flushed line by line. For large ones, reading a buffer larger than the last-level cache
/// is faster.
class CacheSweeper {
public:
  void sweep(const exec::Inputs &inputs) {
#ifdef __x86_64__
    constexpr std::size_t kMostFlushed = std::size_t{8} << 20;
    if ((inputs.k.size() + inputs.v.size() + inputs.q.size()) * sizeof(std::uint16_t) <= kMostFlushed) {
      const auto flush = [](const auto &values) {
        for (std::size_t i = 0; i < values.size(); i += 32) // 64 bytes
          _mm_clflush(values.data() + i);
      };
      flush(inputs.k);
      flush(inputs.v);
      flush(inputs.q);
      _mm_mfence();
      return;
    }
#endif
    if (words_.empty())
      allocate();
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < words_.size(); i += 8) // one word of each cache line
      sum += words_[i];
    words_[0] = sum | 1; // so that the loop has a result
  }

private:
  void allocate() {
    constexpr std::size_t kLeast = std::size_t{64} << 20, kMost = std::size_t{512} << 20;
    const long lastLevel = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
    const std::size_t bytes =
        std::clamp(2 * static_cast<std::size_t>(std::max(lastLevel, 0L)), kLeast, kMost);
    words_.assign(bytes / sizeof(std::uint64_t), 1);
  }

  std::vector<std::uint64_t> words_;
};

struct CpuState {
  const spec::Variant &variant;
  exec::CpuKernel kernel;
  exec::CpuExecutor executor;
  CacheSweeper sweeper;
  exec::Inputs *inputs[kInputSets] = {};

  exec::Inputs &of(InputSet set) { return *inputs[static_cast<std::size_t>(set)]; }
};

class CpuRunner : public Runner {
public:
  explicit CpuRunner(CpuState &state) : state_(state) {}

  int blocks() const override { return state_.executor.threads(); }

  Result<void> run(const plan::Plan &plan, InputSet set, exec::Outputs &outputs) override {
    exec::Inputs &inputs = state_.of(set);
    inputs.queryCount = plan.queryCount();
    return state_.executor.run(state_.kernel, state_.variant, plan, inputs, outputs);
  }

  Result<std::vector<double>> time(const plan::Plan &plan, int repeats) override {
    const exec::Inputs &inputs = state_.of(InputSet::Values);
    const std::vector<abi::ParamSlot> params = inputs.paramSlots(state_.variant);
    auto view = exec::InputView::of(inputs, state_.variant, params);
    view.queryCount = plan.queryCount();
    const auto rows =
        static_cast<std::size_t>(view.queryCount) * static_cast<std::size_t>(state_.variant.queryHeads);
    out_.resize(rows * static_cast<std::size_t>(state_.variant.tensors.out.dim));
    lse_.resize(state_.variant.withLse ? rows : 0);
    const exec::OutputView outputs{out_.data(), lse_.empty() ? nullptr : lse_.data()};
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) {
      state_.sweeper.sweep(inputs);
      const auto start = std::chrono::steady_clock::now();
      if (auto ran = state_.executor.run(state_.kernel, state_.variant, plan, view, outputs); !ran)
        return ran.error();
      times.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    return times;
  }

private:
  CpuState &state_;
  std::vector<std::uint16_t> out_;
  std::vector<float> lse_;
};

class CpuMachine : public Machine {
public:
  CpuMachine(const spec::Variant &variant, exec::CpuKernel kernel, exec::CpuExecutor executor)
      : state_{variant, std::move(kernel), std::move(executor), {}, {}} {}

  config_cache::DeviceKey key() const override {
    return config_cache::DeviceKey::ofCpu(state_.executor.threads());
  }
  Result<void> load(exec::Inputs &inputs, InputSet set) override {
    state_.inputs[static_cast<std::size_t>(set)] = &inputs;
    return {};
  }
  Result<std::unique_ptr<Runner>> open(const package::KernelSet *) override {
    return std::unique_ptr<Runner>(std::make_unique<CpuRunner>(state_));
  }

private:
  CpuState state_;
};

} // namespace

Result<std::unique_ptr<Machine>> openCpu(const spec::Variant &variant, exec::CpuKernel kernel, int threads) {
  auto executor = exec::CpuExecutor::create(threads);
  if (!executor)
    return executor.error();
  return std::unique_ptr<Machine>(
      std::make_unique<CpuMachine>(variant, std::move(kernel), std::move(*executor)));
}

} // namespace deft::measure
