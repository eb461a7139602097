// How near is a step on the CPU to what the machine can do, and what does the JIT cost?
//
// Two ceilings are measured in the same run, with the same threads: the rate at which a plain loop reads the
// very pools that the step reads, front to back, and the rate of register-only multiply-adds at the kernel's
// vector width. (A bf16 dot instruction makes twice as many; the ceiling does not count that.) Against them:
//
//  - without sharing, sixteen requests of 8 KV heads for 1, 2 and 4 query heads each, and of 32 for one each,
//    over a cache of 256 MiB, far beyond the last level, and over one of 16 MiB, which lies in an L3 of 32:
//    at least 60 % of the read rate, goal 85 %;
//  - with sharing (few-shot prompting, token trees of speculative decoding, levels of a deep tree, chains of
//    one-token nodes; Llama 3's heads): the time of the larger of reading each byte of the cache 1.5 times
//    and of its flops at half of the multiply-add rate.
//
// A time is the fastest of the rounds, each of which runs the plain read, the multiply-adds and the step in
// turn: what else runs on the machine only adds. The spread is that of the median above it. Every result is
// checked against the float64 oracle after timing. Pages are of 16 tokens, nhd, scattered over the pool; the
// pool lies in huge pages where the system grants them, as a server's would.
//
//   cpu_bench [--quick] [--threads N] [--only NAME] [--json FILE]

#include "compiler/driver/Compilation.h"
#include "runtime/exec/RandomInputs.h"
#include "runtime/exec/cpu/CpuExecutor.h"
#include "runtime/plan/Planner.h"
#include "runtime/program/CpuConfig.h"
#include "runtime/reference/Check.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/bench/CpuCeilings.h"
#include "tests/bench/SecondsSince.h"
#include "tests/support/Forest.h"
#include "tests/support/ShippedVariants.h"

#include <nlohmann/json.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace deft {
namespace {

using Clock = std::chrono::steady_clock;
using tree::KvTree;

constexpr double kLeastShare = 0.6, kGoalShare = 0.85, kMostReads = 1.5, kPeakShare = 0.5;

template <typename T> T need(support::Result<T> result) {
  if (!result)
    throw std::runtime_error(result.error().message);
  return std::move(*result);
}
void need(const support::Result<void> &result) {
  if (!result)
    throw std::runtime_error(result.error().message);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Options {
  bool isQuick = false;
  int threads = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
  std::string only, json;
};

exec::CpuKernel compile(const spec::Variant &variant, const support::SourceManager &sources) {
  return need(need(driver::Compilation::create(variant, sources)).jitCpuKernel());
}

spec::Variant llama(int queryHeads, int kvHeads) {
  spec::Variant variant;
  variant.name = "bench";
  variant.queryHeads = queryHeads;
  variant.kvHeads = kvHeads;
  variant.tensors = spec::Tensors::alike(128);
  variant.withLse = true;
  variant.scale = 1 / std::sqrt(128.0);
  return variant;
}

/// Requests of a long prompt, each followed by a token tree, every node of which asks.
KvTree speculative(int requests, int promptTokens, int treeNodes) {
  KvTree tree;
  for (int request = 0; request < requests; ++request) {
    std::vector<int> nodes = {need(tree.addNode(-1, promptTokens))};
    for (int i = 1; i <= treeNodes; ++i) {
      nodes.push_back(need(tree.addNode(nodes[static_cast<std::size_t>((i - 1) / 2)], 1)));
      (void)need(tree.addQuery(nodes.back()));
    }
  }
  return tree;
}

/// Chains of one-token nodes below one prompt, a query at every eighth token.
KvTree chains(int count, int promptTokens, int length) {
  KvTree tree;
  const int root = need(tree.addNode(-1, promptTokens));
  for (int chain = 0; chain < count; ++chain)
    for (int i = 0, node = root; i < length; ++i) {
      node = need(tree.addNode(node, 1));
      if (i % 8 == 7)
        (void)need(tree.addQuery(node));
    }
  return tree;
}

struct Case {
  std::string name;
  int queryHeads, kvHeads;
  bool isShared;
  KvTree tree;
};

std::vector<Case> cases(const Options &options) {
  std::vector<Case> all;
  const int tokens = options.isQuick ? 16 << 10 : 64 << 10; // of 4 KiB at 8 KV heads
  for (int ratio : {1, 2, 4})
    all.push_back({"no_sharing_ratio_" + std::to_string(ratio), 8 * ratio, 8, false,
                   test::levelTree({16}, {tokens / 16})});
  all.push_back({"no_sharing_32_heads", 32, 32, false, test::levelTree({16}, {tokens / 64})});
  for (int ratio : {1, 2, 4})
    all.push_back(
        {"no_sharing_l3_ratio_" + std::to_string(ratio), 8 * ratio, 8, false, test::levelTree({16}, {256})});
  all.push_back({"few_shot", 32, 8, true, test::levelTree({1, 20}, {4000, 200})});
  all.push_back({"speculative", 32, 8, true, speculative(4, 2000, 64)});
  all.push_back(
      {"deep_tree", 32, 8, true, test::levelTree({1, 2, 4, 8, 16, 32}, {512, 256, 128, 64, 64, 64})});
  all.push_back({"one_token_chains", 32, 8, true, chains(8, 500, 128)});
  return all;
}

/// A pool as a server would have it: at the start of a page, huge where the system grants it.
class Pool {
public:
  explicit Pool(std::span<const std::uint16_t> values) : count_(values.size()) {
    constexpr std::size_t kHuge = 2 << 20;
    const std::size_t bytes = (count_ * sizeof(std::uint16_t) + kHuge - 1) / kHuge * kHuge;
    memory_.reset(static_cast<std::uint16_t *>(std::aligned_alloc(kHuge, bytes)));
    if (!memory_)
      throw std::bad_alloc();
    (void)madvise(memory_.get(), bytes, MADV_HUGEPAGE);
    std::copy(values.begin(), values.end(), memory_.get());
  }
  std::span<const std::uint16_t> values() const { return {memory_.get(), count_}; }

private:
  struct Free {
    void operator()(void *memory) const { std::free(memory); }
  };
  std::unique_ptr<std::uint16_t, Free> memory_;
  std::size_t count_;
};

nlohmann::json measure(const Case &test, exec::CpuExecutor &executor, const Options &options) {
  const spec::Variant variant = llama(test.queryHeads, test.kvHeads);
  const exec::CpuKernel kernel = compile(variant, support::SourceManager());
  KvTree tree = test.tree;
  const auto placement = need(tree::placeInCache(
      tree, {.pageSize = variant.cache.pageSize, .order = tree::PlacementOrder::Scattered, .seed = 1}));
  const exec::Inputs inputs = exec::makeRandomInputs(variant, tree, placement, {}, 1);
  const Pool k(inputs.k), v(inputs.v);
  const auto config = need(program::cpuConfig(variant, executor.threads()));
  const auto plan = need(plan::makePlan(tree, plan::VariantFacts::of(variant), config, executor.threads()));

  double rowTokens = 0, tokens = 0;
  for (const tree::Query &query : tree.queries())
    rowTokens += static_cast<double>(tree.pathTokens(query));
  for (const tree::Node &node : tree.nodes())
    tokens += node.tokens;
  const double bytes = tokens * variant.kvHeads * variant.tensors.cacheBytes();
  const double flops = rowTokens * variant.queryHeads * variant.tensors.pairFlops();

  exec::Outputs outputs;
  need(executor.run(kernel, variant, plan, inputs, outputs)); // sizes the outputs, warms up
  const std::vector<abi::ParamSlot> params = inputs.paramSlots(variant);
  exec::InputView view = exec::InputView::of(inputs, variant, params);
  view.k = k.values().data();
  view.v = v.values().data();
  const exec::OutputView output{outputs.out.data(), outputs.lse.data()};
  // Small caches are read several times, so that a pass is long beside the clock and the start of threads.
  const double poolBytes = static_cast<double>(inputs.k.size()) * 4;
  std::vector<double> read, peak, step;
  for (int round = 0; round < (options.isQuick ? 7 : 15); ++round) {
    read.push_back(bench::readSeconds(k.values(), v.values(), executor.threads()) / poolBytes);
    peak.push_back(1 / bench::flopsPerSecond(executor.threads(), kernel->isaLevel));
    const auto start = Clock::now();
    need(executor.run(kernel, variant, plan, view, output));
    step.push_back(secondsSince(start));
  }
  const auto report = reference::check(variant, tree, inputs, outputs,
                                       {.threads = executor.threads(), .mostRowTokens = 100'000});
  if (!report.passed())
    throw std::runtime_error(test.name + " is wrong: " + reference::explainFailure(report));

  const double best = *std::min_element(step.begin(), step.end());
  const double readSeconds = *std::min_element(read.begin(), read.end()) * bytes;
  const double flopSeconds = *std::min_element(peak.begin(), peak.end()) * flops;
  const double allowed = test.isShared ? std::max(kMostReads * readSeconds, flopSeconds / kPeakShare)
                                       : readSeconds / kLeastShare;
  const bool holds = best <= allowed;
  std::printf("%-20s %6zu %6.1f %9.2f %9.2f %9.2f %7.2f %7.2f %9.2f  %s %4.0f %%\n", test.name.c_str(),
              plan.items.size(), bytes / (1 << 20), best * 1e3, readSeconds * 1e3, flopSeconds * 1e3,
              readSeconds / best, flopSeconds / best, allowed * 1e3,
              !holds                                               ? "MISSED"
              : !test.isShared && readSeconds / best >= kGoalShare ? "goal  "
                                                                   : "holds ",
              (median(step) / best - 1) * 100);
  return {{"name", test.name},
          {"threads", executor.threads()},
          {"items", plan.items.size()},
          {"cache_mib", bytes / (1 << 20)},
          {"ms", best * 1e3},
          {"spread", median(step) / best - 1},
          {"read_gb_per_s", bytes / readSeconds * 1e-9},
          {"peak_gflops", flops / flopSeconds * 1e-9},
          {"share_of_read", readSeconds / best},
          {"share_of_peak", flopSeconds / best},
          {"allowed_ms", allowed * 1e3},
          {"error", report.error},
          {"error_allowed", report.allowed},
          {"holds", holds}};
}

nlohmann::json measureJit() {
  const test::ShippedVariants shipped = test::shippedVariants();
  nlohmann::json rows = nlohmann::json::array();
  std::printf("JIT, import and passes included   first ms  median ms\n");
  for (const spec::Variant &variant : shipped.variants) {
    std::vector<double> times;
    for (int i = 0; i < 3; ++i) {
      const auto start = Clock::now();
      compile(variant, shipped.sources);
      times.push_back(secondsSince(start) * 1e3);
    }
    std::printf("%-32s  %8.0f  %9.0f%s\n", variant.name.c_str(), times.front(), median(times),
                median(times) > 300 ? "  MISSED: above 300" : "");
    rows.push_back({{"variant", variant.name}, {"first_ms", times.front()}, {"median_ms", median(times)}});
  }
  return rows;
}

int run(const Options &options) {
  nlohmann::json report;
  if (options.only.empty() || options.only == "jit")
    report["jit"] = measureJit();
  auto executor = need(exec::CpuExecutor::create(options.threads));
  std::printf("\n%d threads; shares are of the plain read of the same pools and of the multiply-add peak\n",
              executor.threads());
  std::printf("%-20s %6s %6s %9s %9s %9s %7s %7s %9s  %-6s %6s\n", "case", "items", "MiB", "ms", "read ms",
              "fma ms", "of read", "of fma", "allowed", "target", "spread");
  for (const Case &test : cases(options))
    if (options.only.empty() || test.name.find(options.only) != std::string::npos)
      report["steps"].push_back(measure(test, executor, options));
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    if (!(file << report.dump(2) << '\n'))
      throw std::runtime_error("cannot write " + options.json);
  }
  return 0;
}

Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const bool hasValue = i + 1 < argc;
    if (name == "--quick")
      options.isQuick = true;
    else if (name == "--threads" && hasValue)
      options.threads = std::stoi(argv[++i]);
    else if (name == "--only" && hasValue)
      options.only = argv[++i];
    else if (name == "--json" && hasValue)
      options.json = argv[++i];
    else
      throw std::runtime_error("usage: cpu_bench [--quick] [--threads N] [--only NAME] [--json FILE]");
  }
  return options;
}

} // namespace
} // namespace deft

int main(int argc, char **argv) {
  try {
    return deft::run(deft::parse(argc, argv));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "cpu_bench: %s\n", error.what());
    return 1;
  }
}
