/// Time of the first plan of a tree, for which `auto` weighs partitions and chunks: the 57 decode steps that
/// have a peer (45 of FastTree, 12 of DeFT), as `deftc bench` plans them on an H200, with its prices.
///
///   first_plan_bench [--repeat N] [--workloads DIR] [--choices]
///
/// Each row is planned by a planner that knows nothing, so memory is new, too. `plan` is the config that is
/// chosen untuned, `choice` what choosing it takes: a first plan by each of the default configs. The goal is
/// 150 us in the median of `plan` on the host of an H200. `worse` says by how much more than the cheapest of
/// all partitions and chunks the choice is priced; at most 1 % is right. Minimum of N runs each: where others
/// compute beside this, a median is theirs, too. With --choices one line a row: name, partition, chunk,
/// price.

#include "compiler/config/ConfigJson.h"
#include "compiler/config/DevicePrices.h"
#include "compiler/kernels/DefaultConfig.h"
#include "compiler/kernels/Occupancy.h"
#include "runtime/config_cache/UntunedChooser.h"
#include "runtime/plan/Planner.h"
#include "runtime/tree/CachePlacement.h"
#include "tests/bench/SecondsSince.h"
#include "tuner/bench/KernelRows.h"
#include "tuner/workload/Workload.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

namespace deft {
namespace {

struct Options {
  int repeats = 15;
  std::string workloads;
  bool choices = false;
};

/// As tests/bench/kernel_rows.deft has them.
spec::Variant variantOf(std::string_view attention) {
  spec::Variant variant;
  variant.name = attention;
  variant.queryHeads = attention == "h16_1" ? 16 : 32;
  variant.kvHeads = attention == "h16_1" ? 1 : attention == "h32_8" ? 8 : 32;
  variant.tensors = spec::Tensors::alike(128);
  return variant;
}

struct Row {
  double planUs = 0, choiceUs = 0;
  double price = 0; ///< of the choice
  double worse = 0; ///< than the least price, as a share of that
  plan::Choice choice;
};

template <class Do> double leastUs(int repeats, const Do &work) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    least = std::min(least, 1e6 * secondsSince(begin));
  }
  return least;
}

/// Of what a partition and a chunk give.
double rankOf(const tree::KvTree &tree, const plan::VariantFacts &facts, config::Config config, int blocks,
              const plan::Choice &choice) {
  config.partition = choice.partition;
  config.chunkTokens = choice.chunkTokens;
  config.order = config::Order::FromRoot; // which no choice depends on
  const auto plan = plan::makePlan(tree, facts, config, blocks);
  if (!plan)
    return std::numeric_limits<double>::infinity();
  plan::CostModel model;
  model.set(facts, config, blocks);
  return plan::rankOf(model.estimate(*plan).microseconds, config.cost, *plan);
}

double leastRank(const tree::KvTree &tree, const plan::VariantFacts &facts, const config::Config &config,
                 int blocks) {
  plan::Choice best;
  double least = std::numeric_limits<double>::infinity();
  const auto tryOut = [&](const plan::Choice &choice) {
    if (const double rank = rankOf(tree, facts, config, blocks, choice); rank < least) {
      least = rank;
      best = choice;
    }
  };
  for (const spec::Partition partition : plan::kAutoPartitions)
    tryOut({partition, 0});
  const spec::Partition partition = best.partition;
  for (const int chunk : plan::kAutoChunks)
    tryOut({partition, chunk});
  return least;
}

Row measure(tree::KvTree tree, const spec::Variant &variant, const Options &options) {
  const config::PricedDevice device = config::someGpu();
  const target::Target *const target = target::findTarget("sm_90a");
  const config::DevicePrices prices = config::pricesFor(device);
  const std::vector<config::Config> configs = kernels::defaultConfigs(variant, target).value();
  (void)tree::placeInCache(tree, {.pageSize = 0});
  const auto facts = plan::VariantFacts::of(variant);
  Row row;
  config::Config config;
  row.choiceUs = leastUs(options.repeats, [&] {
    config_cache::UntunedChooser chooser(variant, target, device.units, configs, prices);
    config = chooser.choose(tree);
  });
  const int blocks = kernels::estimateBlocks(kernels::KernelShape::of(variant), config, target, device.units);
  row.planUs = leastUs(options.repeats, [&] {
    plan::Planner planner;
    plan::Plan plan;
    if (!planner.make(tree, facts, config, blocks, plan))
      std::abort();
    row.choice = planner.lastChoice();
  });
  row.price = rankOf(tree, facts, config, blocks, row.choice);
  row.worse = row.price / leastRank(tree, facts, config, blocks) - 1;
  return row;
}

double medianOf(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

int run(const Options &options) {
  std::vector<double> plan, choice;
  double worst = 0;
  int left = 0;
  for (const auto &rows : {bench::fasttreeRows(), bench::deftRows()})
    for (const bench::KernelRow &one : rows) {
      const auto workload = workload::make(one.workload, 1, options.workloads);
      if (!workload) { // a record, whose folder was not named
        ++left;
        continue;
      }
      const Row row = measure(workload->tree(), variantOf(one.attention), options);
      plan.push_back(row.planUs);
      choice.push_back(row.choiceUs);
      worst = std::max(worst, row.worse);
      const std::string partition = config::partitionName(row.choice.partition);
      if (options.choices)
        std::printf("%s %s %d %.6f\n", one.name.data(), partition.c_str(), row.choice.chunkTokens, row.price);
      else
        std::printf("%-14s plan %8.1f us  choice %8.1f us  %-10s %4d  %9.3f us, worse %.2f %%\n",
                    one.name.data(), row.planUs, row.choiceUs, partition.c_str(), row.choice.chunkTokens,
                    row.price, 100 * row.worse);
    }
  std::printf(
      "%zu rows (%d left out): plan %.1f us in the median, %.1f at most; choice %.1f us, %.1f at most; "
      "worse by %.2f %% at most\n",
      plan.size(), left, medianOf(plan), *std::max_element(plan.begin(), plan.end()), medianOf(choice),
      *std::max_element(choice.begin(), choice.end()), 100 * worst);
  return worst <= 0.01 ? 0 : 1;
}

} // namespace
} // namespace deft

int main(int argc, char **argv) {
  deft::Options options;
  CLI::App app("Times the first plans of the rows that have a peer");
  app.add_option("--repeat", options.repeats, "Runs of each, the fastest counts")->check(CLI::PositiveNumber);
  app.add_option("--workloads", options.workloads, "The folder of recorded workloads");
  app.add_flag("--choices", options.choices, "Only what is chosen, a line a row");
  CLI11_PARSE(app, argc, argv);
  return deft::run(options);
}
