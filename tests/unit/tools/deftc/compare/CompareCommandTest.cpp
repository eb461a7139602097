// compare, called as the program calls it, on the CPU.
#include "tests/support/RunDeftc.h"
#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace deft::cli {
namespace {

using nlohmann::json;
using test::Outcome;
using testing::HasSubstr;
using testing::Not;

constexpr char kWorkload[] = "few_shot:prompt=200,branches=3";

class CompareCommandTest : public testing::Test {
protected:
  CompareCommandTest()
      : cache_("DEFT_CACHE_DIR", folder_.path("cache")), configs_("DEFT_CONFIG_PATH", std::nullopt) {
    write("a.deft", "attention near { query_heads = 4; kv_heads = 2; head_dim = 64; param w : i32 = 32;"
                    " mask = tree && kv_pos > q_pos - w; }");
    write("b.deft", "attention near { query_heads = 4; kv_heads = 2; head_dim = 64; }");
    write("tree", R"({"format": "deftc-tree", "version": 1, "nodes": [{"parent": -1, "tokens": 90},
                      {"parent": 0, "tokens": 7}, {"parent": 0, "tokens": 9}],
                      "queries": [{"node": 1}, {"node": 2}]})");
  }

  void write(const std::string &name, const std::string &text) const {
    std::ofstream(folder_.path(name)) << text;
  }

  static Outcome compare(std::vector<std::string> inputs, const std::vector<std::string> &more = {}) {
    inputs.insert(inputs.begin(), "compare");
    for (const char *word : {"--backend", "cpu", "--rounds", "1", "--threads", "1"})
      inputs.emplace_back(word);
    inputs.insert(inputs.end(), more.begin(), more.end());
    return test::runDeftc(inputs);
  }
  static json rowsOf(const Outcome &outcome) {
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    return json::parse(outcome.out).at("rows");
  }

  module_cache::TestFolder folder_;
  test::SetVariable cache_, configs_;
};

TEST_F(CompareCommandTest, EveryPartitionIsARowBesideTheChoice) {
  const json rows =
      rowsOf(compare({folder_.path("b.deft")}, {"--workload", kWorkload, "--check", "--json", "-"}));
  std::set<std::string> partitions;
  int chosen = 0;
  for (const json &row : rows) {
    partitions.insert(row.at("asked"));
    chosen += row.at("chosen").get<bool>() ? 1 : 0;
    EXPECT_FALSE(row.at("tuned").get<bool>());
    EXPECT_EQ(row.at("fault"), nullptr);
    EXPECT_TRUE(row.at("right").get<bool>()) << row;
    EXPECT_GT(row.at("median_us"), 0);
    EXPECT_GT(row.at("plan_us"), 0);
  }
  EXPECT_EQ(partitions, (std::set<std::string>{"auto", "query", "node", "node_chunk", "flatten", "cascade",
                                               "greedy", "union"}));
  EXPECT_EQ(chosen, 1);
  EXPECT_EQ(rows.size(), 8u);
}

TEST_F(CompareCommandTest, TheTableBeginsWithWhatIsFastest) {
  const Outcome outcome = compare({folder_.path("b.deft")}, {"--workload", kWorkload});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out,
              testing::ContainsRegex("^few_shot.* on cpu \\(1 thread\\), the median of 1 round in "
                                     "turn\nfastest: near, untuned, partition [a-z_: ]+, "));
  EXPECT_THAT(outcome.out, HasSubstr("untuned choice"));
  EXPECT_THAT(outcome.out, HasSubstr("nothing is tuned for near on few_shot"));
}

TEST_F(CompareCommandTest, TwoSpecsOnTreesOfOnesOwnStandSideBySide) {
  const json rows = rowsOf(
      compare({folder_.path("a.deft"), folder_.path("tree"), folder_.path("b.deft")},
              {"--workload", kWorkload, "--partition", "node,query", "--param", "w=16", "--json", "-"}));
  std::set<std::string> specs, trees;
  long long read[2] = {0, 0};
  for (const json &row : rows) {
    specs.insert(row.at("spec"));
    trees.insert(row.at("tree"));
    if (row.at("tree") == "tree" && row.at("asked") == "query")
      read[row.at("spec") == "near of b.deft"] = row.at("item_tokens");
  }
  EXPECT_EQ(specs, (std::set<std::string>{"near of a.deft", "near of b.deft"}));
  EXPECT_EQ(trees.size(), 2u);
  EXPECT_EQ(rows.size(), 2u * 2 * 3); // trees, specs, the choice and two partitions
  EXPECT_EQ(read[1], 97 + 99);
  // Windows of 16 tokens: the branches, and for both of them what one sees of the prompt.
  EXPECT_EQ(read[0], 7 + 9 + 2 * (16 - 7));
}

TEST_F(CompareCommandTest, FilesOfOneNameAreToldApartByTheirFolders) {
  std::filesystem::create_directory(folder_.path("v2"));
  write("v2/b.deft", "attention near { query_heads = 8; kv_heads = 2; head_dim = 64; }");
  write("v2/tree", R"({"format": "deftc-tree", "version": 1, "nodes": [{"parent": -1, "tokens": 50}],
                       "queries": [{"node": 0}]})");
  const json rows = rowsOf(compare(
      {folder_.path("b.deft"), folder_.path("v2/b.deft"), folder_.path("tree"), folder_.path("v2/tree")},
      {"--partition", "query", "--json", "-"}));
  std::map<std::string, std::set<std::string>> specsOfTree;
  for (const json &row : rows)
    specsOfTree[row.at("tree")].insert(row.at("spec"));
  const std::set<std::string> specs{"near of " + folder_.path("b.deft"),
                                    "near of " + folder_.path("v2/b.deft")};
  EXPECT_EQ(specsOfTree, (std::map<std::string, std::set<std::string>>{{folder_.path("tree"), specs},
                                                                       {folder_.path("v2/tree"), specs}}));
}

TEST_F(CompareCommandTest, OneFileGivenTwiceIsNotComparedWithItself) {
  const std::string spec = folder_.path("b.deft"), tree = folder_.path("tree");
  EXPECT_THAT(compare({spec, spec, tree}).err, HasSubstr("`" + spec + "` is given twice"));
  EXPECT_EQ(compare({spec, tree, tree}).code, kExitUsage);
}

TEST_F(CompareCommandTest, WhatIsMissingIsSaid) {
  EXPECT_THAT(compare({folder_.path("tree")}).err, HasSubstr("neither a spec nor a package is given"));
  EXPECT_THAT(compare({folder_.path("a.deft")}).err, HasSubstr("give --tree FILE or --workload NAME"));
  EXPECT_THAT(compare({folder_.path("a.deft"), folder_.path("tree")}, {"--param", "v=1"}).err,
              HasSubstr("has no parameter `v`"));
  EXPECT_EQ(compare({folder_.path("a.deft")}, {"--partition", "tree"}).code, kExitUsage);
  EXPECT_EQ(test::runDeftc({"compare"}).code, kExitUsage);
}

} // namespace
} // namespace deft::cli
