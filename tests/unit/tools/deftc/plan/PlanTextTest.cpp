#include "tools/deftc/plan/PlanText.h"

#include "tests/support/Forest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace deft::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A plan for one KV head of four query heads, of items as they come.
plan::PlanReport reportOf(tree::KvTree tree, spec::Partition partition, int chunk) {
  config::Config config;
  config.partition = partition;
  config.chunkTokens = chunk;
  config.phases = {{.name = "wide", .rowsAbove = 4, .tileQ = 64},
                   {.name = "narrow", .rowsAbove = -1, .tileQ = 16}};
  plan::VariantFacts facts{4, 1};
  auto report = plan::reportPlan(std::move(tree), facts, config, config.cost, 8);
  EXPECT_TRUE(report) << report.error().message;
  report->treeName = "some tree";
  report->variantName = "mine";
  report->machineName = "a machine";
  return std::move(*report);
}

std::string textOf(const plan::PlanReport &report) {
  std::ostringstream out;
  printPlan(report, "as told", out);
  return out.str();
}

/// The line of an item, with single spaces, without its time.
std::string itemLine(const std::string &text, int item) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    std::vector<std::string> words;
    for (std::string word; in >> word;)
      words.push_back(word);
    if (words.size() < 7 || words[0] != std::to_string(item))
      continue;
    std::string joined;
    for (std::size_t i = 1; i < words.size(); ++i)
      joined += i == 5 ? "" : (joined.empty() ? "" : " ") + words[i];
    return joined;
  }
  return "none";
}

/// A root of 100 tokens and three leaves of 10, a query each: the root is cut in two.
TEST(PlanTextTest, ItemsAreToldByQueriesRowsAndPartsOfNodes) {
  const plan::PlanReport report =
      reportOf(test::levelTree({1, 3}, {100, 10}), spec::Partition::NodeChunk, 64);
  const std::string text = textOf(report);
  EXPECT_THAT(text, HasSubstr("plan of some tree for mine\n"));
  EXPECT_THAT(
      text, HasSubstr("  tree       4 nodes, 3 queries, 130 tokens read, each by 2.5 queries on average\n"));
  EXPECT_THAT(text, HasSubstr("  machine    a machine\n  config     as told\n"));
  EXPECT_THAT(text,
              HasSubstr("5 items for each of 1 KV head, 0 write the output, 5 write partials (9 slots)\n"));
  EXPECT_THAT(text, HasSubstr("  merge      3 queries from 9 partials\n"));
  EXPECT_EQ(itemLine(text, 0), "wide 0-2 12 64 partial n0[0:64]");
  EXPECT_EQ(itemLine(text, 1), "wide 0-2 12 36 partial n0[64:100]");
  EXPECT_EQ(itemLine(text, 3), "narrow 1 4 10 partial n2");
  EXPECT_THAT(text, Not(HasSubstr("more item")));
}

TEST(PlanTextTest, ManyItemsAndManyRunsAreCounted) {
  const std::string items = textOf(reportOf(test::levelTree({1, 39}, {100, 10}), spec::Partition::Node, 0));
  EXPECT_THAT(items, HasSubstr("    and 2 more items; --as json has all of them\n"))
      << "the root in three row tiles, and 39 leaves";
  EXPECT_EQ(itemLine(items, 40), "none");
  const std::string runs = textOf(reportOf(test::levelTree({1, 9}, {64, 8}), spec::Partition::Union, 1024));
  EXPECT_EQ(itemLine(runs, 0), "wide 0-8 36 136 output n0 n1 n2 n3 n4 n5 and 4 more");
}

TEST(PlanTextTest, ACausalStretchHasAStroke) {
  tree::KvTree tree;
  const int prompt = tree.addNode(-1, 8).value();
  for (int seen = 1; seen <= 8; ++seen)
    ASSERT_TRUE(tree.addQuery(prompt, seen));
  const std::string text = textOf(reportOf(std::move(tree), spec::Partition::Union, 1024));
  EXPECT_EQ(itemLine(text, 0), "wide 0-7 32 8 output n0/");
}

TEST(PlanTextTest, WhatAutoTookIsSaid) {
  const plan::PlanReport chosen = reportOf(test::levelTree({1, 3}, {100, 10}), spec::Partition::Auto, 0);
  EXPECT_NE(chosen.plan.partition, spec::Partition::Auto);
  EXPECT_THAT(textOf(chosen), HasSubstr(" (chosen by `auto`), chunks of at most "));
}

} // namespace
} // namespace deft::cli
