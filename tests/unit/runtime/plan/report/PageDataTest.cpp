#include "runtime/plan/report/PageData.h"

#include "tests/unit/runtime/plan/report/ReportTesting.h"

#include <nlohmann/json.hpp>

#include <map>

namespace deft::plan {
namespace {

using nlohmann::json;

json dataOf(const PlanReport &report) { return pageData({.report = &report, .why = "a test"}); }

TEST(PageDataTest, EveryPathIsCoveredOnceByItsRuns) {
  const PlanReport report = reportOf(test::levelTree({2, 4, 8}, {300, 20, 7}));
  const json data = dataOf(report), &runs = data.at("runs"), &items = data.at("items");
  ASSERT_EQ(items.at("run").size(), report.plan.items.size() + 1);
  EXPECT_EQ(items.at("run").back(), runs.at("node").size());
  std::map<int, int> seen;
  for (std::size_t r = 0; r < runs.at("node").size(); ++r)
    for (int query = runs.at("from")[r]; query < runs.at("to")[r]; ++query)
      seen[query] += runs.at("tokens")[r].get<int>();
  ASSERT_EQ(seen.size(), 8u);
  for (const auto &[query, tokens] : seen)
    EXPECT_EQ(tokens, data.at("queries").at("position")[static_cast<std::size_t>(query)].get<int>() + 1);
}

TEST(PageDataTest, ThePartsOfTheModelsTimeAreItsTotal) {
  const json data = dataOf(reportOf(test::levelTree({1, 3, 9}, {300, 100, 40})));
  const json &cost = data.at("cost");
  const double sum =
      cost.at("memory").get<double>() + cost.at("blocks").get<double>() + cost.at("launch").get<double>();
  EXPECT_GT(cost.at("launch").get<double>(), 0);
  EXPECT_NEAR(sum, cost.at("us").get<double>(), 1e-9 * sum);
}

TEST(PageDataTest, NodesHaveTheirNamesAndDeadOnesAreNamed) {
  tree::KvTree tree = test::levelTree({1, 3}, {40, 20});
  ASSERT_TRUE(tree.prune(3));
  PlanReport report = reportOf(tree);
  report.nodeNames = {"prompt", "", "b"};
  const json nodes = dataOf(report).at("nodes");
  EXPECT_EQ(nodes.at("names"), (json{{"0", "prompt"}, {"2", "b"}}));
  EXPECT_EQ(nodes.at("dead"), json::array({3}));
}

TEST(PageDataTest, WorkersAreBlocksOrThreads) {
  const auto workerOf = [](config::Family family) {
    config::Config config = makeConfig(64);
    for (config::PhaseConfig &phase : config.phases)
      phase.family = family;
    return dataOf(reportOf(test::levelTree({1, 3}, {40, 20}), {4, 2}, config)).at("worker");
  };
  EXPECT_EQ(workerOf(config::Family::Sm80), "block");
  EXPECT_EQ(workerOf(config::Family::Cpu), "thread");
}

TEST(PageDataTest, TooManyUnitsAreLoadsAlone) {
  const PlanReport few = reportOf(test::levelTree({1, 3}, {40, 20}));
  EXPECT_FALSE(dataOf(few).at("blocks").at("units").is_null());
  // Items of 16 tokens, each for 128 KV heads.
  const PlanReport many = reportOf(test::levelTree({1, 600}, {40, 48}), {1, 128}, makeConfig(16));
  ASSERT_GT(many.plan.items.size() * 128, static_cast<std::size_t>(kMostPageUnits));
  const json blocks = dataOf(many).at("blocks");
  EXPECT_TRUE(blocks.at("units").is_null());
  EXPECT_EQ(blocks.at("loads").size(), 8u);
}

TEST(PageDataTest, WhatAMaskHidesIsMarked) {
  EXPECT_EQ(dataOf(reportOf(test::levelTree({1, 3}, {40, 20}))).at("hides"), false);
  PlanReport report = reportOf(test::levelTree({1, 3}, {40, 20}), windowFacts());
  EXPECT_EQ(dataOf(report).at("hides"), true);
  report.shows = [](const MaskSite &site) { return site.depth == 0; };
  EXPECT_GE(dataOf(report).at("hidden").size(), 1u);
}

TEST(PageDataTest, ATreeWithoutQueriesIsAnEmptyPlan) {
  const json data = dataOf(reportOf(tree::KvTree()));
  EXPECT_EQ(data.at("items").at("run"), json::array({0}));
  EXPECT_EQ(data.at("blocks").at("loads").size(), 8u);
}

} // namespace
} // namespace deft::plan
