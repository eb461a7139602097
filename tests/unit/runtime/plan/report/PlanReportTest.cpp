#include "runtime/plan/report/PlanReport.h"

#include "compiler/config/DevicePrices.h"
#include "tests/support/LatentTensors.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

#include <nlohmann/json.hpp>

namespace deft::plan {
namespace {

/// A root of 40 tokens with three branches of 20, in chunks of 16 tokens.
PlanReport someReport() {
  auto report = reportPlan(test::levelTree({1, 3}, {40, 20}), {4, 2}, makeConfig(16, {16, 8}),
                           config::nearestPrices(config::someGpu()).kernels, 8);
  EXPECT_TRUE(report) << report.error().message;
  return std::move(*report);
}

TEST(PlanReportTest, EveryRunIsOfTheNodeThatHoldsItsTokens) {
  const PlanReport report = someReport();
  ASSERT_EQ(report.nodeOfRun.size(), report.plan.runs.size());
  for (std::size_t r = 0; r < report.nodeOfRun.size(); ++r) {
    const abi::Run &run = report.plan.runs[r];
    const tree::Node &node = report.tree.nodes()[static_cast<std::size_t>(report.nodeOfRun[r])];
    EXPECT_GE(run.location, node.location);
    EXPECT_LE(run.location + run.tokens, node.location + node.tokens);
    EXPECT_EQ(run.location - node.location, run.position - node.position);
  }
}

TEST(PlanReportTest, NodesAndPhasesAreCalledByTheirNames) {
  PlanReport report = someReport();
  report.config.phases[0].name = "wide";
  report.config.phases[1].name = "narrow";
  report.nodeNames = {"prompt", ""};
  EXPECT_EQ(report.nodeName(0), "prompt");
  EXPECT_EQ(report.nodeName(1), "n1"); // without one of its own
  EXPECT_EQ(report.nodeName(3), "n3");
  for (std::size_t p = 0; p < 2; ++p)
    for (int i = 0; i < report.plan.phases[p].itemCount; ++i)
      EXPECT_EQ(report.phaseName(report.plan.phases[p].itemBegin + i), report.config.phases[p].name);
  EXPECT_EQ(report.phaseName(static_cast<int>(report.plan.items.size())), "");
}

TEST(PlanReportTest, TheLoadOfAllBlocksIsTheTimeOfAllUnits) {
  const PlanReport report = someReport();
  double units = 0, load = 0;
  for (const abi::Item &item : report.plan.items)
    units += report.facts.kvHeads * report.model.unitUs(report.plan, item);
  for (const double us : report.balance.load)
    load += us;
  EXPECT_EQ(report.balance.load.size(), 8u);
  EXPECT_GT(units, 0);
  EXPECT_NEAR(load, units, 1e-9 * units);
}

TEST(PlanReportTest, JsonHasEveryItemAndItsRuns) {
  const PlanReport report = someReport();
  const nlohmann::json json = toJson(report);
  ASSERT_EQ(json.at("items").size(), report.plan.items.size());
  for (std::size_t i = 0; i < report.plan.items.size(); ++i) {
    const auto &item = json.at("items")[i];
    EXPECT_EQ(item.at("tokens"), report.plan.items[i].tokens);
    int tokens = 0;
    for (const auto &run : item.at("runs"))
      tokens += run.at("tokens").get<int>();
    EXPECT_EQ(tokens, report.plan.items[i].tokens);
  }
  EXPECT_EQ(json.at("tree").at("nodes").size(), 4u);
}

TEST(PlanReportTest, UnitsAreKvHeadsOrGroupsOfQueryHeads) {
  EXPECT_EQ(unitsText({4, 8}), "8 KV heads");
  spec::Variant latent;
  latent.queryHeads = 128;
  latent.kvHeads = 1;
  latent.tensors = test::latentTensors();
  EXPECT_EQ(unitsText(VariantFacts::of(latent)), "2 groups of query heads");
  EXPECT_EQ(unitsText(VariantFacts::of(latent, config::DeviceKind::Cpu)), "1 KV head");
}

TEST(PlanReportTest, TheTextSaysWhoReadsAndWhatAMaskHides) {
  EXPECT_EQ(readText(someReport()), "100 tokens read, each by 1.8 queries on average");
  VariantFacts facts{4, 2};
  spec::VisibleBounds::Bound window; // kv_pos >= q_pos - 7
  window.at.qPos = 1;
  window.at.rest.constant = -7;
  facts.reach = Reach::of({{{.from = {window}, .until = {}, .conditions = {}}}}, {});
  const auto report = reportPlan(test::levelTree({1, 3}, {40, 20}), facts, makeConfig(16),
                                 config::nearestPrices(config::someGpu()).kernels, 8);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(readText(*report), "24 tokens read, 76 left out by the mask");
}

} // namespace
} // namespace deft::plan
