#include "tools/deftc/BenchKernels.h"

#include "compiler/spec/Names.h"
#include "runtime/device/Driver.h"
#include "tools/deftc/RunInput.h"
#include "tuner/bench/KernelBench.h"
#include "tuner/workload/Workload.h"

#include "compiler/config/ConfigJson.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <iomanip>
#include <map>
#include <ostream>
#include <sstream>
#include <thread>

namespace deft::cli {

using bench::KernelBenchResult;
using bench::KernelRow;
using bench::Measured;
using nlohmann::json;
using support::Error;
using support::ErrorCode;
using support::Result;

namespace {

struct Mean { ///< geometric
  double logSum = 0;
  int count = 0;
  void add(double value) {
    logSum += std::log(value);
    ++count;
  }
  double value() const { return count > 0 ? std::exp(logSum / count) : 0; }
};

json toJson(const Measured &measured) {
  json object = {{"config", config::toJson(measured.config)},
                 {"items", measured.items},
                 {"partial_slots", measured.partialSlots},
                 {"plan_us", measured.planUs},
                 {"median_us", measured.medianUs},
                 {"fastest_us", measured.fastestUs},
                 {"slowest_us", measured.slowestUs}};
  if (measured.warmUs > 0)
    object["warm_us"] = measured.warmUs;
  return object;
}

/// Rows of a suite on the GPU, a line each as they come.
class Suite {
public:
  Suite(Context &context, const KernelBenchFlags &options, const std::string &name)
      : context_(context), options_(options), name_(name) {}

  int run(std::span<const KernelRow> rows) {
    if (auto opened = open(); !opened)
      return reportError(context_, opened.error());
    printHead();
    for (const KernelRow &row : rows) {
      if (!options_.only.empty() && row.name.find(options_.only) == std::string_view::npos)
        continue;
      if (auto ran = runRow(row); !ran)
        return reportError(context_, {ran.error().code, std::string(row.name) + ": " + ran.error().message,
                                      ran.error().hint});
    }
    printMeans();
    if (!options_.json.empty())
      if (const int code = writeOutput(context_, options_.json, report().dump(1) + "\n"); code != kExitOk)
        return code;
    if (wrong_ > 0)
      return reportError(context_, {ErrorCode::Diagnostics, std::to_string(wrong_) + " rows are wrong", ""});
    return kExitOk;
  }

private:
  Result<void> open() {
    const auto driver = device::Driver::load();
    if (!driver)
      return driver.error();
    auto device = device::Device::open(*driver);
    if (!device)
      return device.error();
    device_ = *device;
    return {};
  }

  /// The attention of a row's heads is the one of the spec that is called after them.
  Result<bench::KernelBench *> benchOf(const KernelRow &row) {
    const std::string variant = "h" + std::to_string(row.queryHeads) + "_" + std::to_string(row.kvHeads);
    if (const auto found = benches_.find(variant); found != benches_.end())
      return &found->second;
    auto program = openProgram(context_, options_.spec, variant);
    if (!program)
      return program.error();
    std::string warning;
    const device::DeviceFacts &facts = device_->facts();
    auto kernels = program->cudaKernels(facts.major, facts.minor, warning);
    if (!warning.empty())
      context_.err << "warning: " << warning << '\n';
    if (!kernels)
      return kernels.error();
    auto made = bench::KernelBench::open(device_, program->variant(), *kernels);
    if (!made)
      return made.error();
    return &benches_.emplace(variant, std::move(*made)).first->second;
  }

  Result<void> runRow(const KernelRow &row) {
    if (!row.workload.starts_with("levels") && options_.workloads.empty()) {
      context_.out << std::left << std::setw(14) << row.name << "left out: it needs --workloads DIR\n";
      return {};
    }
    const auto workload = workload::make(row.workload, options_.seed, options_.workloads);
    if (!workload)
      return workload.error();
    auto bench = benchOf(row);
    if (!bench)
      return bench.error();
    bench::KernelBenchOptions options;
    options.pages =
        options_.pages == "scattered" ? tree::PlacementOrder::Scattered : tree::PlacementOrder::InOrder;
    options.repeats = options_.repeats;
    options.warmToo = options_.warm;
    options.explore = options_.explore;
    options.seed = options_.seed;
    options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    if (options_.chunk >= 0)
      options.chunkTokens = options_.chunk;
    if (options_.tileQ > 0)
      options.tileQ = options_.tileQ;
    if (!options_.partition.empty())
      options.partition = config::partitionFromName(options_.partition);
    const auto result = (*bench)->run(workload->tree(), options);
    if (!result)
      return result.error();
    printRow(row, *result);
    return {};
  }

  void printHead() {
    context_.out << name_ << " on " << device_->facts().name << ", cold L2, us, median of "
                 << options_.repeats << "; peer: the best published kernel as recorded\n"
                 << std::left << std::setw(14) << "tree" << std::right << std::setw(9) << "us" << std::setw(9)
                 << "floor" << std::setw(8) << "/floor" << std::setw(9) << "peer" << std::setw(8) << "faster";
    if (options_.warm)
      context_.out << std::setw(9) << "warm";
    context_.out << std::setw(7) << "items" << std::setw(9) << "partials" << std::setw(9) << "plan";
    if (options_.explore)
      context_.out << std::setw(9) << "best" << std::setw(8) << "/best" << std::setw(7) << "tile"
                   << std::setw(7) << "chunk";
    context_.out << "\n";
  }

  void printRow(const KernelRow &row, const KernelBenchResult &result) {
    const Measured &chosen = result.chosen;
    const double floorUs = result.floorUs > 0 ? result.floorUs : row.floorUs;
    std::ostringstream line;
    line << std::fixed << std::setprecision(1) << std::left << std::setw(14) << row.name << std::right
         << std::setw(9) << chosen.medianUs << std::setw(9) << floorUs << std::setprecision(2) << std::setw(8)
         << chosen.medianUs / floorUs << std::setprecision(1) << std::setw(9) << row.peerUs
         << std::setprecision(2) << std::setw(8) << row.peerUs / chosen.medianUs << std::setprecision(1);
    if (options_.warm)
      line << std::setw(9) << chosen.warmUs;
    line << std::setw(7) << chosen.items << std::setw(9) << chosen.partialSlots << std::setw(9)
         << chosen.planUs;
    if (result.best) {
      const Measured &best = *result.best;
      line << std::setw(9) << best.medianUs << std::setprecision(2) << std::setw(8)
           << chosen.medianUs / best.medianUs << std::setw(7) << best.config.phases.front().tileQ
           << std::setw(7) << best.chunkTokens;
      bestOverFloor_.add(best.medianUs / floorUs);
      bestFaster_.add(row.peerUs / best.medianUs);
    }
    if (!result.check.passed()) {
      line << "  WRONG: " << reference::explainFailure(result.check);
      ++wrong_;
    }
    context_.out << line.str() << std::endl; // seen as it comes
    overFloor_.add(chosen.medianUs / floorUs);
    faster_.add(row.peerUs / chosen.medianUs);
    rows_.push_back({{"name", row.name},
                     {"heads", std::to_string(row.queryHeads) + "/" + std::to_string(row.kvHeads)},
                     {"floor_us", floorUs},
                     {"recorded_floor_us", row.floorUs},
                     {"peer_us", row.peerUs},
                     {"peer", row.peer},
                     {"flat_us", row.flatUs},
                     {"cache_bytes", result.cacheBytes},
                     {"flops", result.flops},
                     {"right", result.check.passed()},
                     {"error", result.check.error},
                     {"allowed_error", result.check.allowed},
                     {"chosen", toJson(chosen)}});
    if (result.best)
      rows_.back()["best"] = toJson(*result.best);
  }

  void printMeans() {
    if (overFloor_.count == 0)
      return;
    std::ostringstream line;
    line << std::fixed << std::setprecision(2) << overFloor_.count
         << " rows, geometric means: " << overFloor_.value() << " times the floor, " << faster_.value()
         << " times faster than the best peer";
    if (bestFaster_.count > 0)
      line << "; best of the exploration " << bestOverFloor_.value() << " and " << bestFaster_.value();
    context_.out << line.str() << "\n";
  }

  json report() const {
    json report = {{"suite", name_},
                   {"device", device_->facts().name},
                   {"pages", options_.pages},
                   {"repeats", options_.repeats},
                   {"seed", options_.seed},
                   {"over_floor", overFloor_.value()},
                   {"faster_than_peer", faster_.value()},
                   {"rows", rows_}};
    return report;
  }

  Context &context_;
  const KernelBenchFlags &options_;
  std::string name_;
  std::shared_ptr<device::Device> device_;
  std::map<std::string, bench::KernelBench> benches_;
  Mean overFloor_, faster_, bestOverFloor_, bestFaster_;
  json rows_ = json::array();
  int wrong_ = 0;
};

} // namespace

void addKernelFlags(CLI::App *command, KernelBenchFlags &flags) {
  command->add_option("SPEC", flags.spec, "A spec or package with attentions called h32_8, h32_32 and h16_1");
  command->add_option("--workloads", flags.workloads, "The folder of recorded workloads")
      ->check(CLI::ExistingDirectory);
  command->add_option("--only", flags.only, "Rows whose name contains this");
  command->add_option("--pages", flags.pages, "How trees lie in the cache")
      ->check(CLI::IsMember({"in-order", "scattered"}));
  command->add_option("--partition", flags.partition, "In place of the config's")
      ->check(CLI::IsMember(spec::partitionNames()));
  command->add_option("--chunk", flags.chunk, "Most tokens of an item; 0 fills the machine")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--tile", flags.tileQ, "Most rows of an item")->check(CLI::PositiveNumber);
  command->add_option("--repeat", flags.repeats, "Timed runs of each row")->check(CLI::PositiveNumber);
  command->add_option("--seed", flags.seed, "Of the inputs and of the scattering");
  command->add_flag("--warm", flags.warm, "Time with a warm L2, too");
  command->add_flag("--explore", flags.explore, "Also try every chunk and tile size, and print the fastest");
  command->add_option("--json", flags.json, "Write the report to this file, - for the output");
}

int benchKernels(Context &context, const KernelBenchFlags &flags, const std::string &suite,
                 std::span<const bench::KernelRow> rows) {
  if (flags.spec.empty())
    return reportError(context, {ErrorCode::Usage, "which spec to run is not said",
                                 "give a spec, like tests/bench/kernel_rows.deft, or a package"});
  return Suite(context, flags, suite).run(rows);
}

} // namespace deft::cli
