/// Time of making a plan, and of advancing one, on one core.
///
/// Shapes of 1,000 nodes and 1,000 queries, and ten and a hundred times as many to show the growth. The goal
/// is 50 us for a new plan of a given partition and 10 us for advance() at 1,000. The work is linear; the
/// time of a node grows where trees leave the caches, and with the branches that nobody can foresee. At
/// 10,000 nodes it is at most 1.3 times that at 1,000, but 2.2 times for forest, and for token_trees under
/// union. At 100,000 it is 0.9 to 1.6 times that at 1,000 for few_shot, fan and no_sharing, up to 2.5 times
/// for binary and token_trees and 4 times for forest. For the same reason 1,000 nodes of a forest that
/// differs in everything from the one planned before take 1.8 to 2.6 times the time shown, where the same
/// tree comes again and again. Every plan is verified before it is timed (to 10,000 nodes). Trees on which a
/// partition makes far more partials than there are nodes and queries (a deep chain under `node`) are left
/// out: there the output alone is what costs.
/// Of prompts and other causal stretches (prefill, append, mixed) the goal is 50 us for 4,096 and for 16,384
/// queries, each of which takes some numbers and nothing else; "list_bytes" are those of items and runs.
/// --benchmark_out=FILE writes JSON.

#include "compiler/config/ConfigJson.h"
#include "runtime/plan/Planner.h"
#include "runtime/plan/Verify.h"
#include "runtime/tree/CachePlacement.h"

#include <benchmark/benchmark.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace deft {
namespace {

using tree::KvTree;

constexpr int kBlocks = 132;
constexpr plan::VariantFacts kFacts{.ratio = 4, .kvHeads = 8};

int node(KvTree &tree, int parent, int tokens) { return tree.addNode(parent, tokens).value(); }
void query(KvTree &tree, int node) { (void)tree.addQuery(node).value(); }

/// One prompt, a branch for each query.
KvTree fewShot(int size) {
  KvTree tree;
  const int root = node(tree, -1, 4000);
  for (int i = 1; i < size; ++i)
    query(tree, node(tree, root, 200));
  return tree;
}

/// A full binary tree, two queries on each leaf.
KvTree binary(int size) {
  KvTree tree;
  for (int i = 0; i < size; ++i)
    node(tree, i == 0 ? -1 : (i - 1) / 2, 64);
  for (int i = size / 2; i < size; ++i) {
    query(tree, i);
    query(tree, i);
  }
  return tree;
}

/// A root, as many branches as each of them has leaves.
KvTree fan(int size) {
  KvTree tree;
  const int width = static_cast<int>(std::sqrt(size));
  const int root = node(tree, -1, 1000);
  for (int i = 0; i < width; ++i)
    node(tree, root, 300);
  for (int i = width + 1; i < size; ++i)
    query(tree, node(tree, 1 + (i - width - 1) * width / (size - width - 1), 100));
  return tree;
}

/// Requests in speculative decoding: a prompt, and 63 nodes of one token with a query each.
KvTree tokenTrees(int size) {
  std::mt19937 random(7);
  KvTree tree;
  for (int i = 0; i < size; i += 64) {
    const int prompt = node(tree, -1, 2000);
    for (int k = 1; k < 64 && i + k < size; ++k)
      query(tree, node(tree, k < 4 ? prompt : prompt + static_cast<int>(random() % unsigned(k)), 1));
  }
  return tree;
}

/// A service: system prompts, conversations of some turns with branches here and there, requests of their
/// own.
KvTree forest(int size) {
  std::mt19937 random(11);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  KvTree tree;
  for (int i = 0; i < size; ++i)
    node(tree, i < 4 || below(20) == 0 ? -1 : below(3) == 0 ? below(4) : below(i), 1 + below(600));
  for (int i = 0; i < size; ++i)
    query(tree, below(size));
  return tree;
}

KvTree noSharing(int size) {
  KvTree tree;
  for (int i = 0; i < size; ++i)
    query(tree, node(tree, -1, 1000));
  return tree;
}

/// Queries of a node's last tokens.
void causal(KvTree &tree, int node, int count) {
  const int tokens = tree.nodes()[static_cast<std::size_t>(node)].tokens;
  for (int seen = tokens - count + 1; seen <= tokens; ++seen)
    (void)tree.addQuery(node, seen).value();
}

/// A prompt, all of whose tokens are new.
KvTree prefill(int size) {
  KvTree tree;
  causal(tree, node(tree, -1, size), size);
  return tree;
}

/// So many new tokens behind 4,000 that another one shares.
KvTree append(int size) {
  KvTree tree;
  const int root = node(tree, -1, 4000);
  query(tree, node(tree, root, 200));
  causal(tree, node(tree, root, size), size);
  return tree;
}

/// 60 requests that decode, and 4 that have so many new tokens, taken together.
KvTree mixed(int size) {
  KvTree tree;
  const int root = node(tree, -1, 1000);
  for (int i = 0; i < 60; ++i)
    query(tree, node(tree, root, 200 + 37 * i % 900));
  for (int i = 0; i < 4; ++i)
    causal(tree, node(tree, i % 2 == 0 ? root : -1, size / 4 + 512 * i), size / 4);
  return tree;
}

config::Config makeConfig(spec::Partition partition) {
  config::Config config;
  config.partition = partition;
  for (const auto &[tileQ, rowsAbove] : {std::pair{128, 64}, {64, 16}, {16, -1}}) {
    config::PhaseConfig phase;
    phase.tileQ = tileQ;
    phase.rowsAbove = rowsAbove;
    config.phases.push_back(phase);
  }
  return config;
}

bool isSound(benchmark::State &state, const KvTree &tree, const config::Config &config,
             const plan::Plan &plan) {
  if (tree.aliveNodes() > 10'000)
    return true;
  if (const auto verified = plan::verify(plan, tree, kFacts, config); !verified) {
    state.SkipWithError(verified.error().message.c_str());
    return false;
  }
  return true;
}

void benchMake(benchmark::State &state, spec::Partition partition, KvTree (*shape)(int)) {
  KvTree tree = shape(static_cast<int>(state.range(0)));
  (void)tree::placeInCache(tree, {});
  const config::Config config = makeConfig(partition);
  plan::Planner planner;
  plan::Plan plan;
  if (const auto made = planner.make(tree, kFacts, config, kBlocks, plan); !made) {
    state.SkipWithError(made.error().message.c_str());
    return;
  }
  if (!isSound(state, tree, config, plan))
    return;
  for (auto step : state)
    benchmark::DoNotOptimize(planner.make(tree, kFacts, config, kBlocks, plan));
  state.counters["items"] = static_cast<double>(plan.items.size());
  state.counters["partials"] = plan.partialSlots;
  state.counters["list_bytes"] =
      static_cast<double>(plan.items.size() * sizeof(abi::Item) + plan.runs.size() * sizeof(abi::Run));
}

/// Every leaf grows by one token each step; the plan is made anew when it asks for it, outside of the time.
void benchAdvance(benchmark::State &state, spec::Partition partition, KvTree (*shape)(int)) {
  KvTree tree = shape(static_cast<int>(state.range(0)));
  (void)tree::placeInCache(tree, {});
  const config::Config config = makeConfig(partition);
  plan::Planner planner;
  plan::Plan plan;
  (void)planner.make(tree, kFacts, config, kBlocks, plan);
  const int nodes = static_cast<int>(tree.nodes().size());
  int replans = 0;
  for (auto step : state) {
    state.PauseTiming();
    for (int i = 0; i < nodes; ++i)
      if (tree.nodes()[i].firstChild < 0)
        (void)tree.append(i, 1);
    state.ResumeTiming();
    const plan::Advance advanced = planner.advance(tree, plan);
    if (advanced == plan::Advance::Done)
      continue;
    state.PauseTiming();
    ++replans;
    (void)planner.make(tree, kFacts, config, kBlocks, plan);
    state.ResumeTiming();
  }
  isSound(state, tree, config, plan);
  state.counters["replans"] = benchmark::Counter(replans, benchmark::Counter::kAvgIterations);
}

void registerAll() {
  const std::pair<const char *, KvTree (*)(int)> shapes[] = {
      {"few_shot", fewShot},       {"binary", binary}, {"fan", fan},
      {"token_trees", tokenTrees}, {"forest", forest}, {"no_sharing", noSharing}};
  const spec::Partition partitions[] = {
      spec::Partition::Query,   spec::Partition::Node,   spec::Partition::NodeChunk, spec::Partition::Flatten,
      spec::Partition::Cascade, spec::Partition::Greedy, spec::Partition::Union,     spec::Partition::Auto};
  for (const spec::Partition partition : partitions)
    for (const auto &[name, shape] : shapes)
      benchmark::RegisterBenchmark(("make/" + config::partitionName(partition) + "/" + name).c_str(),
                                   benchMake, partition, shape)
          ->RangeMultiplier(10)
          ->Range(1000, 100'000)
          ->Unit(benchmark::kMicrosecond);
  const std::tuple<const char *, KvTree (*)(int), std::vector<std::int64_t>> ragged[] = {
      {"prefill", prefill, {4096, 16384}}, {"append", append, {512}}, {"mixed", mixed, {4096}}};
  for (const spec::Partition partition :
       {spec::Partition::NodeChunk, spec::Partition::Greedy, spec::Partition::Union, spec::Partition::Auto})
    for (const auto &[name, shape, sizes] : ragged)
      benchmark::RegisterBenchmark(("make/" + config::partitionName(partition) + "/" + name).c_str(),
                                   benchMake, partition, shape)
          ->ArgsProduct({sizes})
          ->Unit(benchmark::kMicrosecond);
  for (const spec::Partition partition : partitions)
    for (const auto &[name, shape] : shapes)
      benchmark::RegisterBenchmark(("advance/" + config::partitionName(partition) + "/" + name).c_str(),
                                   benchAdvance, partition, shape)
          ->Arg(1000)
          ->Iterations(2000)
          ->Unit(benchmark::kMicrosecond);
}

} // namespace
} // namespace deft

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  deft::registerAll();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
