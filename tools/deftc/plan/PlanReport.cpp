#include "tools/deftc/plan/PlanReport.h"

#include "compiler/config/ConfigJson.h"
#include "runtime/plan/Planner.h"
#include "runtime/tree/CachePlacement.h"
#include "runtime/tree/TreeSummary.h"
#include "tools/deftc/common/ConfigOptions.h"
#include "tools/deftc/common/Numbers.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iomanip>
#include <ostream>

namespace deft::cli {

using nlohmann::json;
using support::Result;

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

std::string range(int begin, int count) {
  return count == 1 ? std::to_string(begin) : std::to_string(begin) + "-" + std::to_string(begin + count - 1);
}

/// "n0[0:512] n3" : parts of nodes by their tokens, whole ones without.
std::string runsText(const PlanReport &report, const abi::Item &item) {
  constexpr int kMostRuns = 6;
  std::string text;
  for (int r = 0; r < std::min(item.runCount, kMostRuns); ++r) {
    const abi::Run &run = report.plan.runs[item.runBegin + r];
    const tree::Node &node = report.tree.nodes()[report.nodeOfRun[item.runBegin + r]];
    const int begin = run.position - node.position;
    text += (r > 0 ? " " : "") + report.nodeName(report.nodeOfRun[item.runBegin + r]);
    if (begin > 0 || run.tokens < node.tokens)
      text += "[" + std::to_string(begin) + ":" + std::to_string(begin + run.tokens) + "]";
  }
  if (item.runCount > kMostRuns)
    text += " and " + std::to_string(item.runCount - kMostRuns) + " more";
  return text;
}

std::string phaseOf(const PlanReport &report, int item) {
  for (std::size_t p = 0; p < report.plan.phases.size(); ++p) {
    const plan::Plan::Phase &phase = report.plan.phases[p];
    if (item >= phase.itemBegin && item < phase.itemBegin + phase.itemCount)
      return report.config.phases[p].name;
  }
  return "";
}

json runsJson(const PlanReport &report, const abi::Item &item) {
  json runs = json::array();
  for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
    const abi::Run &run = report.plan.runs[r];
    const tree::Node &node = report.tree.nodes()[report.nodeOfRun[r]];
    runs.push_back({{"node", report.nodeOfRun[r]},
                    {"begin", run.position - node.position},
                    {"tokens", run.tokens},
                    {"queries", {item.queryBegin + run.queryBegin, item.queryBegin + run.queryEnd}}});
  }
  return runs;
}

json itemsJson(const PlanReport &report) {
  json items = json::array();
  for (std::size_t i = 0; i < report.plan.items.size(); ++i) {
    const abi::Item &item = report.plan.items[i];
    json object = {{"phase", phaseOf(report, static_cast<int>(i))},
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

json mergeJson(const plan::Plan &plan) {
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

std::string readText(const PlanReport &report) {
  const tree::TreeSummary tree = tree::summarize(report.tree);
  const std::string text = counted(report.plan.readTokens, "token", "tokens") + " read";
  if (report.facts.reach.isAll())
    return text + ", each by " + rounded(tree.sharing(), 1) + " queries in the mean";
  const std::int64_t hidden = std::max<std::int64_t>(tree.readTokens - report.plan.readTokens, 0);
  return text + ", the mask hides " + withSeparators(hidden) + " from all";
}

Result<PlanReport> reportPlan(tree::KvTree tree, const plan::VariantFacts &facts,
                              const config::Config &config, const config::CostCoefficients &prices,
                              int blocks) {
  PlanReport report;
  report.facts = facts;
  report.config = config;
  report.blocks = blocks;
  if (auto placed = tree::placeInCache(tree, {}); !placed)
    return placed.error();
  report.tree = std::move(tree);
  auto plan = plan::makePlan(report.tree, facts, config, blocks);
  if (!plan)
    return plan.error();
  report.plan = std::move(*plan);
  report.model.set(facts, config, prices, blocks);
  report.cost = report.model.estimate(report.plan);
  report.io = plan::io(report.plan, facts);
  report.nodeOfRun = nodesOfRuns(report);
  std::vector<double> costs;
  for (const abi::Item &item : report.plan.items)
    costs.push_back(report.model.unitUs(report.plan, item));
  report.balance = plan::balance(report.plan, costs, facts.kvHeads, blocks);
  return report;
}

void printPlan(const PlanReport &report, std::ostream &out) {
  constexpr std::size_t kMostItems = 40;
  const plan::Plan &plan = report.plan;
  const tree::TreeSummary tree = tree::summarize(report.tree);
  const auto direct = std::count_if(plan.items.begin(), plan.items.end(),
                                    [](const abi::Item &item) { return item.partialBegin < 0; });
  const auto items = static_cast<long long>(plan.items.size());
  out << "plan of " << report.treeName << " for " << report.variantName << "\n"
      << "  tree       " << counted(tree.nodes, "node", "nodes") << ", "
      << counted(tree.queries, "query", "queries") << ", " << readText(report) << "\n"
      << "  config     "
      << (report.selection ? selectionText(*report.selection)
                           : "the analytic choice for no device in particular")
      << "\n"
      << "  partition  " << config::partitionName(plan.partition)
      << (report.config.partition == spec::Partition::Auto ? " (chosen by `auto`)" : "")
      << ", chunks of at most " << withSeparators(plan.chunkTokens) << " tokens\n"
      << "  items      " << counted(items, "item", "items") << " for each of "
      << counted(report.facts.kvHeads, "KV head", "KV heads") << ", " << withSeparators(direct)
      << " write the output, " << withSeparators(items - direct) << " write partials ("
      << counted(plan.partialSlots, "slot", "slots") << ")\n"
      << "  merge      " << counted(static_cast<long long>(plan.mergeQuery.size()), "query", "queries")
      << " from " << counted(static_cast<long long>(plan.mergeSlot.size()), "partial", "partials") << "\n"
      << "  bytes      " << bytesOf(static_cast<double>(report.io.cacheOnce)) << " of cache once, "
      << bytesOf(static_cast<double>(report.io.cache - report.io.cacheOnce)) << " again, "
      << bytesOf(static_cast<double>(report.io.partials)) << " of partials, "
      << bytesOf(static_cast<double>(report.io.queries + report.io.outputs)) << " of queries and outputs\n"
      << "  products   " << rounded(report.cost.paddedGflop, 2) << " GFLOP with padding, "
      << rounded(report.cost.usefulGflop, 2) << " useful\n"
      << "  load       " << counted(report.blocks, "block", "blocks") << ", the largest load is "
      << rounded(report.balance.maxOverMean(), 2) << " times the mean; "
      << rounded(report.cost.microseconds, 1) << " us by the cost model\n\n"
      << "    item  phase     queries     rows   tokens       us  result    tokens of nodes\n";
  for (std::size_t i = 0; i < std::min(plan.items.size(), kMostItems); ++i) {
    const abi::Item &item = plan.items[i];
    out << std::setw(8) << i << "  " << std::left << std::setw(8) << phaseOf(report, static_cast<int>(i))
        << "  " << std::setw(10) << range(item.queryBegin, item.queryCount) << std::right << std::setw(6)
        << item.queryCount * report.facts.ratio << ' ' << std::setw(8) << withSeparators(item.tokens) << ' '
        << std::setw(8) << rounded(report.model.unitUs(plan, item), 1) << "  " << std::left << std::setw(8)
        << (item.partialBegin < 0 ? "output" : "partial") << std::right << "  " << runsText(report, item)
        << "\n";
  }
  if (plan.items.size() > kMostItems)
    out << "    and " << counted(items - static_cast<long long>(kMostItems), "more item", "more items")
        << "; --as json has all of them\n";
  out << "queries are counted in the plan's order, depth-first\n";
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
          {"selection", report.selection ? config_cache::toJson(*report.selection) : json(nullptr)},
          {"version", 1},
          {"tree", {{"name", report.treeName}, {"nodes", std::move(nodes)}}},
          {"variant", report.variantName},
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

} // namespace deft::cli
