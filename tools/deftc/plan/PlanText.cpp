#include "tools/deftc/plan/PlanText.h"

#include "compiler/config/ConfigJson.h"
#include "runtime/tree/TreeSummary.h"
#include "tools/deftc/common/Numbers.h"

#include <algorithm>
#include <iomanip>
#include <ostream>

namespace deft::cli {
namespace {

std::string range(int begin, int count) {
  return count == 1 ? std::to_string(begin) : std::to_string(begin) + "-" + std::to_string(begin + count - 1);
}

/// "n0[0:512] n3/" : parts of nodes by their tokens, whole ones without; causal stretches with a stroke.
std::string runsText(const plan::PlanReport &report, const abi::Item &item) {
  constexpr int kMostRuns = 6;
  std::string text;
  for (int r = 0; r < std::min(item.runCount, kMostRuns); ++r) {
    const abi::Run &run = report.plan.runs[item.runBegin + r];
    const tree::Node &node = report.tree.nodes()[report.nodeOfRun[item.runBegin + r]];
    const int begin = run.position - node.position;
    text += (r > 0 ? " " : "") + report.nodeName(report.nodeOfRun[item.runBegin + r]);
    if (begin > 0 || run.tokens < node.tokens)
      text += "[" + std::to_string(begin) + ":" + std::to_string(begin + run.tokens) + "]";
    if (run.slope != 0)
      text += "/";
  }
  if (item.runCount > kMostRuns)
    text += " and " + std::to_string(item.runCount - kMostRuns) + " more";
  return text;
}

} // namespace

void printPlan(const plan::PlanReport &report, const std::string &why, std::ostream &out) {
  constexpr std::size_t kMostItems = 40;
  const plan::Plan &plan = report.plan;
  const tree::TreeSummary tree = tree::summarize(report.tree);
  const auto direct = std::count_if(plan.items.begin(), plan.items.end(),
                                    [](const abi::Item &item) { return item.partialBegin < 0; });
  const auto items = static_cast<long long>(plan.items.size());
  out << "plan of " << report.treeName << " for " << report.variantName << "\n"
      << "  tree       " << counted(tree.nodes, "node", "nodes") << ", "
      << counted(tree.queries, "query", "queries") << ", " << readText(report) << "\n"
      << "  machine    " << report.machineName << "\n"
      << "  config     " << why << "\n"
      << "  partition  " << config::partitionName(plan.partition)
      << (report.config.partition == spec::Partition::Auto ? " (chosen by `auto`)" : "")
      << ", chunks of at most " << withSeparators(plan.chunkTokens) << " tokens\n"
      << "  items      " << counted(items, "item", "items") << " for each of "
      << plan::unitsText(report.facts) << ", " << withSeparators(direct) << " write the output, "
      << withSeparators(items - direct) << " write partials (" << counted(plan.partialSlots, "slot", "slots")
      << ")\n"
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
    out << std::setw(8) << i << "  " << std::left << std::setw(8) << report.phaseName(static_cast<int>(i))
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

} // namespace deft::cli
