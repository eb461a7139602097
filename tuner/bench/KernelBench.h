#pragma once

#include "compiler/spec/Variant.h"
#include "runtime/device/Timer.h"
#include "runtime/exec/cuda/CudaExecutor.h"
#include "runtime/plan/Io.h"
#include "runtime/plan/Planner.h"
#include "runtime/reference/Check.h"
#include "runtime/tree/CachePlacement.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace deft::bench {

struct KernelBenchOptions {
  tree::PlacementOrder pages = tree::PlacementOrder::InOrder;
  int repeats = 41;
  bool warmToo = false; ///< time with a warm L2 as well
  bool explore = false; ///< also try every chunk and tile size below, and keep the fastest
  /// A config to use instead of the kernels' own one; it must run on the same kernels.
  std::optional<config::Config> config;
  std::optional<int> chunkTokens;
  std::optional<int> tileQ; ///< most rows of an item; at most the kernel's
  std::optional<spec::Partition> partition;
  std::uint64_t seed = 1;
  int threads = 1;                        ///< of the host, for inputs and checks
  long long mostCheckedPairs = 4'000'000; ///< (row, token) pairs compared with the oracle; 0: all
};

/// One way to run a tree, and its times.
struct Measured {
  config::Config config;
  int chunkTokens = 0;
  int items = 0;
  int partialSlots = 0;
  spec::Partition partition = spec::Partition::Auto; ///< of the plan
  plan::IoBytes io;                                  ///< of the plan
  double firstPlanUs = 0;                            ///< here `auto` chooses for the tree's class
  double planUs = 0;                                 ///< median of the next plans, which keep that choice
  double medianUs = 0, fastestUs = 0, slowestUs = 0; ///< cold L2
  double warmUs = 0;                                 ///< 0: not requested
};

struct KernelBenchResult {
  Measured chosen;              ///< the planner's own choice
  std::optional<Measured> best; ///< of an exploration
  reference::CheckReport check;
  double cacheBytes = 0; ///< unique
  double flops = 0;
};

/// Values for parameters without a default in benchmarks, as NAME=VALUE.
std::vector<std::string> valuesWithoutDefault(const spec::Variant &variant);

/// Runs one attention over trees on one GPU, one after the other.
class KernelBench {
public:
  static support::Result<KernelBench> open(const std::shared_ptr<device::Device> &device,
                                           const spec::Variant &variant, const package::KernelSet &kernels);

  const spec::Variant &variant() const { return variant_; }

  /// After timing, checks the result of the chosen plan against the oracle and by counting inputs. Arrays of
  /// parameters are 0.05.
  support::Result<KernelBenchResult> run(tree::KvTree tree, const KernelBenchOptions &options);

  /// Times the last measurement of run() again, with a cold L2: plan and inputs are unchanged.
  support::Result<device::Timing> timeAgain(int repeats) { return time(repeats, /*coldL2=*/true); }

private:
  KernelBench(std::shared_ptr<device::Device> device, const spec::Variant &variant, config::Config config)
      : device_(std::move(device)), variant_(variant), config_(std::move(config)),
        inputs_(device_, variant_) {}
  /// The result of counting inputs, by the plan that was prepared last.
  support::Result<reference::CountReport> count(const tree::KvTree &tree, const exec::Inputs &inputs,
                                                const KernelBenchOptions &options);
  /// Times the plan that was prepared last.
  support::Result<device::Timing> time(int repeats, bool coldL2);
  support::Result<Measured> measure(const tree::KvTree &tree, const config::Config &config,
                                    const KernelBenchOptions &options, int repeats);

  std::shared_ptr<device::Device> device_;
  spec::Variant variant_;
  plan::VariantFacts facts_; ///< with the parameters of the last run
  config::Config config_;
  exec::CudaInputs inputs_;
  std::unique_ptr<exec::CudaExecutor> executor_;
};

} // namespace deft::bench
