#include "runtime/exec/cpu/CpuExecutor.h"
#include "runtime/program/CpuConfig.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/run/RunBackend.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace deft::cli {

using support::Result;

namespace {

// Short runs are repeated oftener, so that their median tells more of them than of what else the machine
// does.
constexpr int kFewestRepeats = 5, kMostRepeats = 101;
constexpr double kEnoughUs = 200'000;

class Cpu : public RunBackend {
public:
  Cpu(const program::Program &program, config_cache::ConfigChooser chooser, exec::CpuKernel kernel,
      exec::CpuExecutor executor, int budget)
      : RunBackend(std::move(chooser)), variant_(program.variant()), kernel_(std::move(kernel)),
        executor_(std::move(executor)), budget_(budget) {}

  std::string name() const override { return "cpu"; }
  std::string device() const override {
    return std::to_string(executor_.threads()) + (executor_.threads() == 1 ? " thread" : " threads");
  }
  int blocks() const override { return executor_.threads(); }

  Result<void> load(const exec::Inputs &inputs) override {
    inputs_ = &inputs;
    return {};
  }

  Result<void> runOnce(const plan::Plan &plan, exec::Outputs &outputs) override {
    return executor_.run(kernel_, variant_, plan, *inputs_, outputs);
  }

  Result<RunTimes> runSelecting(const plan::Plan &plan, exec::Outputs &outputs, exec::Selection &selection,
                                int repeats) override {
    const std::vector<abi::ParamSlot> params = inputs_->paramSlots(variant_);
    const auto view = exec::InputView::of(*inputs_, variant_, params);
    const exec::OutputView out = sized(outputs);
    return timed(repeats, [&] {
      return executor_.runSelecting(kernel_, variant_, plan, view, out, budget_, selection, paths_);
    });
  }
  Result<RunTimes> runSparse(const exec::Selection &selection, exec::Outputs &outputs, int repeats) override {
    const std::vector<abi::ParamSlot> params = inputs_->paramSlots(variant_);
    const auto view = exec::InputView::of(*inputs_, variant_, params);
    const exec::OutputView out = sized(outputs);
    return timed(repeats,
                 [&] { return executor_.runSparse(kernel_, variant_, selection, paths_, view, out); });
  }

  Result<RunTimes> runGiven(const plan::Plan &plan, const exec::GivenLists &lists, exec::Outputs &outputs,
                            int repeats) override {
    const std::vector<abi::ParamSlot> params = inputs_->paramSlots(variant_);
    const auto view = exec::InputView::of(*inputs_, variant_, params);
    const exec::OutputView out = sized(outputs);
    return timed(repeats, [&] { return executor_.runSparse(kernel_, variant_, lists, plan, view, out); });
  }

  Result<RunTimes> run(const plan::Plan &plan, exec::Outputs &outputs, int repeats) override {
    if (auto ran = runOnce(plan, outputs); !ran)
      return ran.error();
    const std::vector<abi::ParamSlot> params = inputs_->paramSlots(variant_);
    const auto view = exec::InputView::of(*inputs_, variant_, params);
    const exec::OutputView out{outputs.out.data(), outputs.lse.empty() ? nullptr : outputs.lse.data()};
    return timed(repeats, [&] { return executor_.run(kernel_, variant_, plan, view, out); });
  }

private:
  template <class Run> static Result<RunTimes> timed(int repeats, const Run &run) {
    std::vector<double> times;
    double sum = 0;
    const auto isEnough = [&] {
      const int count = static_cast<int>(times.size());
      return repeats > 0 ? count >= repeats
                         : count >= kMostRepeats || (count >= kFewestRepeats && sum >= kEnoughUs);
    };
    while (!isEnough()) {
      const auto start = std::chrono::steady_clock::now();
      if (Result<void> ran = run(); !ran)
        return ran.error();
      times.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
      sum += times.back();
    }
    RunTimes result;
    result.repeats = static_cast<int>(times.size());
    std::sort(times.begin(), times.end());
    result.medianUs = times[times.size() / 2];
    result.fastestUs = times.front();
    result.slowestUs = times.back();
    return result;
  }

  exec::OutputView sized(exec::Outputs &outputs) const {
    const auto rows =
        static_cast<std::size_t>(inputs_->queryCount) * static_cast<std::size_t>(variant_.queryHeads);
    outputs.out.assign(rows * static_cast<std::size_t>(variant_.tensors.out.dim), 0xffff); // NaN
    outputs.lse.assign(variant_.withLse ? rows : 0, std::numeric_limits<float>::quiet_NaN());
    return {outputs.out.data(), variant_.withLse ? outputs.lse.data() : nullptr};
  }

  const spec::Variant &variant_;
  exec::CpuKernel kernel_;
  exec::CpuExecutor executor_;
  int budget_; ///< tokens of a list, of an attention that selects
  const exec::Inputs *inputs_ = nullptr;
  plan::Paths paths_; ///< of the last plan that selected
};

} // namespace

Result<std::unique_ptr<RunBackend>> openCpu(Context &context, const RunSubject &subject, int threads) {
  const program::Program &program = subject.program;
  auto kernel = program.cpuKernel();
  if (!kernel)
    return kernel.error();
  auto executor = exec::CpuExecutor::create(threads);
  if (!executor)
    return executor.error();
  auto config = program::cpuConfig(program.variant(), executor->threads());
  if (!config)
    return config.error();
  const auto key = config_cache::DeviceKey::ofCpu(executor->threads());
  config_cache::ConfigChooser chooser(loadConfigs(context, subject.configs, key), program.sharedVariant(),
                                      nullptr, std::move(*config));
  return std::unique_ptr<RunBackend>(std::make_unique<Cpu>(program, std::move(chooser), std::move(*kernel),
                                                           std::move(*executor), subject.budget));
}

} // namespace deft::cli
