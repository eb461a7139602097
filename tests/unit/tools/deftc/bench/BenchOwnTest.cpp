// bench own, called as the program calls it, on the CPU.
#include "runtime/device/Driver.h"
#include "tests/support/RunDeftc.h"
#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace deft::cli {
namespace {

using nlohmann::json;
using test::Outcome;
using testing::HasSubstr;

constexpr char kWorkload[] = "few_shot:prompt=200,branches=3";

class BenchOwnTest : public testing::Test {
protected:
  BenchOwnTest()
      : cache_("DEFT_CACHE_DIR", folder_.path("cache")), configs_("DEFT_CONFIG_PATH", std::nullopt) {
    module_cache::writeText(
        folder_.path("a.deft"),
        "attention near { query_heads = 4; kv_heads = 2; head_dim = 64; param w : f32; score = s * w; }");
    module_cache::writeText(folder_.path("b.deft"),
                            "attention far { query_heads = 2; kv_heads = 2; head_dim = 64; }");
    module_cache::writeText(folder_.path("my-tree"),
                            R"({"format": "deftc-tree", "version": 1, "nodes": [{"parent": -1, "tokens": 90},
                               {"parent": 0, "tokens": 7}], "queries": [{"node": 1}]})");
  }

  /// On two threads, three times each.
  Outcome bench(std::vector<std::string> arguments,
                const std::vector<std::string> &backend = {"--backend", "cpu"}) const {
    arguments.insert(arguments.begin(), {"bench", "own", "--repeat", "3", "--threads", "2"});
    arguments.insert(arguments.end(), backend.begin(), backend.end());
    return test::runDeftc(arguments);
  }

  module_cache::TestFolder folder_;
  test::SetVariable cache_, configs_;
};

TEST_F(BenchOwnTest, EachAttentionIsARowOnEachTreeOfAProcessor) {
  const Outcome outcome = bench(
      {folder_.path("a.deft"), folder_.path("my-tree"), folder_.path("b.deft"), "--workload", kWorkload});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("own on a processor, 2 threads, median of 3 runs"));
  for (const std::string &tree : {std::string(kWorkload), std::string("my-tree")})
    for (const char *attention : {"near", "far"})
      EXPECT_THAT(outcome.out, HasSubstr("\n" + tree + ", " + attention + " "));
  EXPECT_THAT(outcome.out,
              HasSubstr("times a plain read of the same tokens in the geometric mean of 4 rows"));
}

TEST_F(BenchOwnTest, TheReportHasWhatRunTellsOfEachRow) {
  const Outcome outcome = bench({folder_.path("b.deft"), folder_.path("my-tree"), "--json", "-"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report.at("format"), "deftc-bench");
  EXPECT_EQ(report.at("device").at("threads"), 2);
  EXPECT_EQ(report.at("options").at("repeats"), 3);
  const json &row = report.at("suites").at(0).at("rows").at(0);
  EXPECT_EQ(row.at("name"), "my-tree");
  EXPECT_EQ(row.at("right"), true);
  EXPECT_GT(row.at("us"), 0);
  EXPECT_GT(row.at("read_us"), 0);
  EXPECT_GT(row.at("scattered_us"), 0);
  EXPECT_EQ(row.at("run").at("tree").at("tokens"), 97);
  EXPECT_EQ(row.at("run").at("time").at("repeats"), 3);
}

TEST_F(BenchOwnTest, QuickLeavesScatteredPagesOutAndOnlyChooses) {
  const Outcome outcome = bench({folder_.path("b.deft"), folder_.path("my-tree"), "--workload", kWorkload,
                                 "--quick", "--only", "my-", "--partition", "node"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("scatter")));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("few_shot")));
  EXPECT_THAT(outcome.out, HasSubstr("  node\n"));
}

TEST_F(BenchOwnTest, WhatIsForAGpuIsRefused) {
  for (const auto &[option, value] : {std::pair{"--tile", "64"}, std::pair{"--explore", ""}}) {
    std::vector<std::string> arguments = {folder_.path("b.deft"), "--workload", kWorkload, option};
    if (*value)
      arguments.emplace_back(value);
    const Outcome outcome = bench(arguments);
    EXPECT_EQ(outcome.code, kExitUsage);
    EXPECT_THAT(outcome.err,
                HasSubstr("`" + std::string(option) + "` is for GPUs, but this runs on a processor"));
  }
}

TEST_F(BenchOwnTest, ATreeIsAskedForAndTheReportIsNotWrittenOverIt) {
  const Outcome without = bench({folder_.path("b.deft")});
  EXPECT_EQ(without.code, kExitUsage);
  EXPECT_EQ(without.err, "error: no tree is given\n  = hint: give a tree file or --workload NAME\n");
  const Outcome over =
      bench({folder_.path("b.deft"), folder_.path("my-tree"), "--json", folder_.path("my-tree")});
  EXPECT_NE(over.code, kExitOk);
  EXPECT_THAT(module_cache::readText(folder_.path("my-tree")), HasSubstr("deftc-tree"));
}

TEST_F(BenchOwnTest, WithoutAGpuItRunsOnTheProcessorUnlessAGpuIsAskedFor) {
  if (device::Driver::load())
    GTEST_SKIP() << "there is a GPU";
  const std::vector<std::string> arguments = {folder_.path("b.deft"), folder_.path("my-tree"), "--quick"};
  EXPECT_EQ(bench(arguments, {}).code, kExitOk);
  EXPECT_EQ(bench(arguments, {"--backend", "cuda"}).code, kExitEnvironment);
}

} // namespace
} // namespace deft::cli
