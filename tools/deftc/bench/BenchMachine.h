#pragma once

#include "runtime/config_cache/ConfigChooser.h"
#include "runtime/program/Program.h"
#include "tools/deftc/common/Context.h"
#include "tuner/bench/KernelBench.h"
#include "tuner/bench/KernelRows.h"
#include "tuner/bench/Scores.h"
#include "tuner/bench/Yardstick.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace deft::cli {

/// What the kernel suites can be told.
struct KernelBenchFlags {
  std::vector<std::string> specs;
  std::string workloads, json, only, partition, commit;
  int chunk = -1; ///< -1: the config's
  int tileQ = 0;  ///< 0: the config's
  int repeats = 41;
  bool quick = false, explore = false;
  bool untuned = false; ///< the analytic choice, whatever was tuned
  std::string config;   ///< --config
  std::uint64_t seed = 1;
};

/// One row as it was measured.
struct RowRun {
  bench::KernelRow row;
  spec::Variant variant;
  config_cache::Ruling ruling; ///< which config, and why
  bench::KernelBenchResult contiguous;
  std::optional<bench::KernelBenchResult> scattered;
  std::optional<bench::KernelBenchResult> pages16; ///< scattered, by the attention of that name
  double rooflineUs = 0; ///< the floor with the plan's queries, outputs and partials
  bench::RowScore score;
  double seconds = 0; ///< that the row took, inputs and checks included

  std::string wrong() const; ///< empty: all results are right
};

/// A tree as one attention ran it.
struct TreeRun {
  config_cache::Ruling ruling;
  bench::KernelBenchResult result;
  bench::KernelBench *bench; ///< the machine's, which can time it again until it runs another one
};

/// The GPU that rows run on, its ceilings, and the attentions that were compiled for it so far.
class BenchMachine {
public:
  /// Measures the ceilings; without NVRTC it warns and takes recorded ones.
  static support::Result<std::unique_ptr<BenchMachine>> open(Context &context, const KernelBenchFlags &flags);

  const device::Device &device() const { return *device_; }
  const bench::Yardstick &yardstick() const { return *yardstick_; }

  /// Whether one of the specs has an attention of this name.
  bool has(std::string_view attention);
  /// Why the row cannot run here; empty: it can.
  std::string missing(const bench::KernelRow &row);

  support::Result<RowRun> measure(const bench::KernelRow &row);
  /// Contiguous pages and a cold L2 only, under an attention of this name.
  support::Result<TreeRun> measurePlain(const bench::KernelRow &row, const std::string &attention);
  /// The floor of what a result computed.
  support::Result<double> floorUs(const spec::Variant &variant, const bench::KernelBenchResult &result);

private:
  BenchMachine(Context &context, const KernelBenchFlags &flags) : context_(context), flags_(flags) {}
  /// The attention of this name, null: none has it.
  support::Result<const program::Program *> programOf(const std::string &attention);
  support::Result<config_cache::Ruling> choose(const program::Program &program, const tree::KvTree &tree);
  /// With the kernels of the config. The attention must be there.
  support::Result<bench::KernelBench *> benchOf(const std::string &attention, const config::Config &config);
  support::Result<TreeRun> runOn(const std::string &attention, const tree::KvTree &tree,
                                 bench::KernelBenchOptions options);
  bench::KernelBenchOptions options() const;
  support::Result<tree::KvTree> treeOf(const bench::KernelRow &row) const;

  Context &context_;
  const KernelBenchFlags &flags_;
  std::shared_ptr<device::Device> device_;
  std::optional<bench::CeilingProbe> probe_;
  std::optional<bench::Yardstick> yardstick_;
  std::shared_ptr<const config_cache::ConfigCache> configs_;
  std::map<std::string, std::optional<program::Program>, std::less<>> programs_; ///< empty: none has it
  struct OpenBench {
    std::string attention;
    config::Config config; ///< whose kernels it has
    std::unique_ptr<bench::KernelBench> bench;
  };
  std::vector<OpenBench> benches_;
};

} // namespace deft::cli
