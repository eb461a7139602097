#include "runtime/plan/report/PageData.h"

#include "compiler/config/ConfigJson.h"
#include "runtime/plan/report/BlockTimes.h"
#include "runtime/plan/report/HiddenParts.h"
#include "runtime/plan/report/NodeReads.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace deft::plan {

using nlohmann::json;

namespace {

/// Nanoseconds are enough, and short.
double shortUs(double us) { return std::round(us * 1e3) / 1e3; }

/// The numbers that `of` gives for each element.
template <class List, class Of> json column(const List &list, const Of &of) {
  json numbers = json::array();
  for (const auto &element : list)
    numbers.push_back(of(element));
  return numbers;
}

json nodesJson(const PlanReport &report) {
  const std::vector<tree::Node> &nodes = report.tree.nodes();
  json names = json::object(), dead = json::array();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i < report.nodeNames.size() && !report.nodeNames[i].empty())
      names[std::to_string(i)] = report.nodeNames[i];
    if (!nodes[i].isAlive)
      dead.push_back(i);
  }
  return {{"parent", column(nodes, [](const tree::Node &node) { return node.parent; })},
          {"tokens", column(nodes, [](const tree::Node &node) { return node.tokens; })},
          {"position", column(nodes, [](const tree::Node &node) { return node.position; })},
          {"depth", column(nodes, [](const tree::Node &node) { return node.depth; })},
          {"names", std::move(names)},
          {"dead", std::move(dead)}};
}

json pageItems(const PlanReport &report) {
  const std::vector<abi::Item> &items = report.plan.items;
  json run = {0}; // where each item's runs begin in pageRuns, and where they end
  int runs = 0;
  for (const abi::Item &item : items)
    run.push_back(runs += item.runCount);
  return {
      {"begin", column(items, [](const abi::Item &item) { return item.queryBegin; })},
      {"count", column(items, [](const abi::Item &item) { return item.queryCount; })},
      {"tokens", column(items, [](const abi::Item &item) { return item.tokens; })},
      {"slot", column(items, [](const abi::Item &item) { return item.partialBegin; })},
      {"dealt", column(items, [](const abi::Item &item) { return item.dealtTiles; })},
      {"us",
       column(items, [&](const abi::Item &item) { return shortUs(report.model.unitUs(report.plan, item)); })},
      {"run", std::move(run)}};
}

json pageRuns(const PlanReport &report) {
  const Plan &plan = report.plan;
  json node = json::array(), begin = json::array(), tokens = json::array(), from = json::array(),
       to = json::array(), slope = json::array();
  for (const abi::Item &item : plan.items)
    for (int r = item.runBegin; r < item.runBegin + item.runCount; ++r) {
      const abi::Run &run = plan.runs[static_cast<std::size_t>(r)];
      const int of = report.nodeOfRun[static_cast<std::size_t>(r)];
      node.push_back(of);
      begin.push_back(run.position - report.tree.nodes()[static_cast<std::size_t>(of)].position);
      tokens.push_back(run.tokens);
      from.push_back(item.queryBegin + run.queryBegin);
      to.push_back(item.queryBegin + run.queryEnd);
      slope.push_back(int{run.slope});
    }
  return {{"node", std::move(node)}, {"begin", std::move(begin)}, {"tokens", std::move(tokens)},
          {"from", std::move(from)}, {"to", std::move(to)},       {"slope", std::move(slope)}};
}

json blocksJson(const BlockTimes &times) {
  const bool areDrawn = times.units.size() <= std::size_t{kMostPageUnits};
  json blocks = {{"loads", column(times.loadUs, shortUs)}, {"units", nullptr}, {"begin", nullptr}};
  if (areDrawn) {
    blocks["units"] = times.units;
    blocks["begin"] = times.unitBegin;
  }
  return blocks;
}

json phasesJson(const PlanReport &report, const BlockTimes &times) {
  json phases = json::array();
  for (std::size_t p = 0; p < report.plan.phases.size(); ++p)
    phases.push_back({{"name", report.config.phases[p].name},
                      {"begin", report.plan.phases[p].itemBegin},
                      {"count", report.plan.phases[p].itemCount},
                      {"us", shortUs(times.launches[p].beginUs)},
                      {"end", shortUs(times.launches[p].endUs)}});
  return phases;
}

json bytesJson(const PlanReport &report) {
  const std::vector<NodeReads> reads = nodeReads(report);
  const std::int64_t token = report.facts.tokenBytes();
  return {{"first", column(reads, [&](const NodeReads &node) { return node.first * token; })},
          {"again", column(reads, [&](const NodeReads &node) { return node.again * token; })},
          {"queries", report.io.queries},
          {"outputs", report.io.outputs},
          {"partials", report.io.partials},
          {"work", report.io.masks + report.io.work}};
}

json costJson(const PlanCost &cost) {
  const double memoryUs = cost.workUs - cost.blockUs;
  const double blocksUs = cost.blocksUs();
  return {{"us", cost.microseconds},    {"memory", memoryUs},
          {"blocks", blocksUs},         {"launch", std::max(0.0, cost.microseconds - memoryUs - blocksUs)},
          {"useful", cost.usefulGflop}, {"padded", cost.paddedGflop}};
}

json hiddenJson(const PlanReport &report) {
  constexpr int kMostParts = 20'000, kMostQuestions = 2'000'000, kMostSamples = 1024;
  json parts = json::array();
  const auto stepOf = [&](int node) {
    return std::max(1, report.tree.nodes()[static_cast<std::size_t>(node)].tokens / kMostSamples);
  };
  for (const HiddenPart &part :
       hiddenParts(report, {.mostParts = kMostParts, .mostQuestions = kMostQuestions, .step = stepOf}))
    parts.push_back({part.node, part.from, part.to, part.queryBegin, part.queryEnd});
  return parts;
}

} // namespace

json pageData(const PagePlan &page) {
  const PlanReport &report = *page.report;
  const Plan &plan = report.plan;
  const BlockTimes times = blockTimes(report);
  const bool hasGroups = report.facts.headGroups > 1;
  json facts = json::array();
  for (const PagePlan::Fact &fact : page.facts)
    facts.push_back({fact.name, fact.text, fact.note});
  return {{"label", page.label.empty() ? config::partitionName(plan.partition) : page.label},
          {"tree", report.treeName},
          {"variant", report.variantName},
          {"machine", report.machineName},
          {"why", page.why},
          {"facts", std::move(facts)},
          {"isGpu", report.isOfGpu()},
          {"worker", report.isOfGpu() ? "block" : "thread"},
          {"unit", hasGroups ? "group of query heads" : "KV head"},
          {"units", hasGroups ? "groups of query heads" : "KV heads"},
          {"heads", report.facts.kvHeads},
          {"ratio", report.facts.ratio},
          {"partition", config::partitionName(plan.partition)},
          {"chunk", plan.chunkTokens},
          {"slots", plan.partialSlots},
          {"read", plan.readTokens},
          {"nodes", nodesJson(report)},
          {"queries",
           {{"node",
             column(plan.callerIndex,
                    [&](int query) { return report.tree.queries()[static_cast<std::size_t>(query)].node; })},
            {"position", plan.queryPos},
            {"caller", plan.callerIndex}}},
          {"phases", phasesJson(report, times)},
          {"items", pageItems(report)},
          {"runs", pageRuns(report)},
          {"merge", {{"query", plan.mergeQuery}, {"begin", plan.mergeBegin}, {"slot", plan.mergeSlot}}},
          {"blocks", blocksJson(times)},
          {"bytes", bytesJson(report)},
          {"cost", costJson(report.cost)},
          {"hides", !report.facts.reach.isAll() || report.shows != nullptr},
          {"hidden", hiddenJson(report)}};
}

} // namespace deft::plan
