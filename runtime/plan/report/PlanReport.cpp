#include "runtime/plan/report/PlanReport.h"

#include "compiler/config/ConfigJson.h"
#include "compiler/support/Numbers.h"
#include "runtime/plan/AgainPrice.h"
#include "runtime/tree/CachePlacement.h"
#include "runtime/tree/TreeSummary.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace deft::plan {

using nlohmann::json;
using support::counted;
using support::Result;
using support::rounded;
using support::withSeparators;

namespace {

/// The node that holds each run's tokens, found by where they lie: no two nodes of a placed tree share a
/// place.
std::vector<int> nodesOfRuns(const PlanReport &report) {
  const std::vector<tree::Node> &nodes = report.tree.nodes();
  std::vector<int> byLocation;
  for (int node = report.tree.firstRoot(); node >= 0; node = report.tree.nextInPreorder(node))
    if (nodes[node].tokens > 0)
      byLocation.push_back(node);
  std::sort(byLocation.begin(), byLocation.end(),
            [&](int a, int b) { return nodes[a].location < nodes[b].location; });
  std::vector<int> found;
  found.reserve(report.plan.runs.size());
  for (const abi::Run &run : report.plan.runs) {
    const auto behind =
        std::upper_bound(byLocation.begin(), byLocation.end(), run.location,
                         [&](int location, int node) { return location < nodes[node].location; });
    found.push_back(*std::prev(behind));
  }
  return found;
}

json runsJson(const PlanReport &report, const abi::Item &item) {
  json runs = json::array();
  for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
    const abi::Run &run = report.plan.runs[r];
    const tree::Node &node = report.tree.nodes()[report.nodeOfRun[r]];
    runs.push_back({{"node", report.nodeOfRun[r]},
                    {"begin", run.position - node.position},
                    {"tokens", run.tokens},
                    {"slope", int{run.slope}},
                    {"queries", {item.queryBegin + run.queryBegin, item.queryBegin + run.queryEnd}}});
  }
  return runs;
}

json itemsJson(const PlanReport &report) {
  json items = json::array();
  for (std::size_t i = 0; i < report.plan.items.size(); ++i) {
    const abi::Item &item = report.plan.items[i];
    json object = {{"phase", report.phaseName(static_cast<int>(i))},
                   {"queries", {item.queryBegin, item.queryBegin + item.queryCount}},
                   {"rows", item.queryCount * report.facts.ratio},
                   {"tokens", item.tokens},
                   {"us", report.model.unitUs(report.plan, item)},
                   {"runs", runsJson(report, item)}};
    object["partial"] = item.partialBegin < 0 ? json(nullptr) : json(item.partialBegin);
    items.push_back(std::move(object));
  }
  return items;
}

json mergeJson(const Plan &plan) {
  json merge = json::array();
  for (std::size_t m = 0; m < plan.mergeQuery.size(); ++m) {
    json slots = json::array();
    for (int s = plan.mergeBegin[m]; s < plan.mergeBegin[m + 1]; ++s)
      slots.push_back(plan.mergeSlot[s]);
    merge.push_back({{"query", plan.mergeQuery[m]}, {"slots", std::move(slots)}});
  }
  return merge;
}

} // namespace

std::string PlanReport::nodeName(int node) const {
  const auto index = static_cast<std::size_t>(node);
  return index < nodeNames.size() && !nodeNames[index].empty() ? nodeNames[index]
                                                               : "n" + std::to_string(node);
}

std::string PlanReport::phaseName(int item) const {
  for (std::size_t p = 0; p < plan.phases.size(); ++p)
    if (const Plan::Phase &phase = plan.phases[p];
        item >= phase.itemBegin && item < phase.itemBegin + phase.itemCount)
      return config.phases[p].name;
  return "";
}

std::string readText(const PlanReport &report) {
  const tree::TreeSummary tree = tree::summarize(report.tree);
  const std::string text = counted(report.plan.readTokens, "token", "tokens") + " read";
  if (report.facts.reach.isAll())
    return text + ", each by " + rounded(tree.sharing(), 1) + " queries on average";
  const std::int64_t hidden = std::max<std::int64_t>(tree.readTokens - report.plan.readTokens, 0);
  return text + ", " + withSeparators(hidden) + " left out by the mask";
}

std::string unitsText(const VariantFacts &facts) {
  return facts.headGroups > 1 ? counted(facts.kvHeads, "group of query heads", "groups of query heads")
                              : counted(facts.kvHeads, "KV head", "KV heads");
}

Result<PlanReport> reportPlan(tree::KvTree tree, const VariantFacts &facts, const config::Config &config,
                              const config::CostCoefficients &prices, int blocks,
                              const PlanOptions &options) {
  PlanReport report;
  report.facts = facts;
  report.config = config;
  report.blocks = blocks;
  if (auto placed = tree::placeInCache(tree, {.pageSize = facts.pageSize}); !placed)
    return placed.error();
  report.tree = std::move(tree);
  Planner planner(options);
  if (auto made = planner.make(report.tree, facts, config, blocks, report.plan); !made)
    return made.error();
  // As UntunedChooser prices it: with the last-level cache, for the tree in its own order.
  report.model.set(facts, config, ofTree(prices, planner.read(report.tree, facts), facts, config), blocks);
  report.cost = report.model.estimate(report.plan);
  report.io = plan::io(report.plan, facts);
  report.nodeOfRun = nodesOfRuns(report);
  std::vector<double> costs;
  for (const abi::Item &item : report.plan.items)
    costs.push_back(report.model.unitUs(report.plan, item));
  report.balance = plan::balance(report.plan, costs, facts.kvHeads, blocks);
  return report;
}

json toJson(const PlanReport &report) {
  json nodes = json::array();
  for (std::size_t i = 0; i < report.tree.nodes().size(); ++i) {
    const tree::Node &node = report.tree.nodes()[i];
    nodes.push_back({{"parent", node.parent},
                     {"tokens", node.tokens},
                     {"depth", node.depth},
                     {"position", node.position},
                     {"name", report.nodeName(static_cast<int>(i))},
                     {"alive", node.isAlive}});
  }
  return {{"format", "deftc-plan"},
          {"version", 2},
          {"tree", {{"name", report.treeName}, {"nodes", std::move(nodes)}}},
          {"variant", report.variantName},
          {"machine", report.machineName},
          {"config", config::toJson(report.config)},
          {"partition", config::partitionName(report.plan.partition)},
          {"chunk_tokens", report.plan.chunkTokens},
          {"query_order", report.plan.callerIndex},
          {"query_positions", report.plan.queryPos},
          {"items", itemsJson(report)},
          {"partial_slots", report.plan.partialSlots},
          {"merge", mergeJson(report.plan)},
          {"bytes",
           {{"cache", report.io.cache},
            {"cache_once", report.io.cacheOnce},
            {"queries", report.io.queries},
            {"outputs", report.io.outputs},
            {"partials", report.io.partials},
            {"masks", report.io.masks},
            {"work", report.io.work}}},
          {"cost",
           {{"us", report.cost.microseconds},
            {"work_us", report.cost.workUs},
            {"longest_item_us", report.cost.longestUs},
            {"padded_gflop", report.cost.paddedGflop},
            {"useful_gflop", report.cost.usefulGflop},
            {"units", report.cost.units}}},
          {"load",
           {{"blocks", report.blocks},
            {"max_over_mean", report.balance.maxOverMean()},
            {"us", report.balance.load}}}};
}

} // namespace deft::plan
