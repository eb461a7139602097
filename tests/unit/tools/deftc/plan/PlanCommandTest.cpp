// plan and bench deft --io, called as the program calls them.
#include "runtime/config_cache/DeviceKey.h"
#include "runtime/device/Driver.h"
#include "runtime/exec/cpu/Processors.h"
#include "tests/support/RunDeftc.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"
#include "tools/deftc/common/Context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <unistd.h>

namespace deft::cli {
namespace {

using test::Outcome;

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

Outcome plan(const std::string &workload, const std::vector<std::string> &more = {}) {
  std::vector<std::string> arguments = {"plan", "llama3_8b", "--workload", workload};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::runDeftc(arguments);
}

/// What is wrong with a document's tags; empty when they nest.
std::string tagError(const std::string &text) {
  std::vector<std::string> open;
  static const std::regex tag("<(/?)([a-z]+)([^<>]*?)(/?)>");
  for (auto found = std::sregex_iterator(text.begin(), text.end(), tag); found != std::sregex_iterator();
       ++found) {
    const std::string name = (*found)[2];
    if ((*found)[1].length() > 0) {
      if (open.empty() || open.back() != name)
        return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
      open.pop_back();
    } else if ((*found)[4].length() == 0) {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : open.back() + " is not closed";
}

TEST(PlanCommandTest, TheMachineDecidesConfigAndBlocks) {
  const auto configOf = [](const std::vector<std::string> &machine) {
    std::vector<std::string> arguments = {"--as", "json"};
    arguments.insert(arguments.end(), machine.begin(), machine.end());
    const Outcome outcome = plan("few_shot", arguments);
    EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
    return json::parse(outcome.out);
  };
  if (!device::Driver::load()) { // with a GPU, it is that one's plan
    const json own = configOf({});
    EXPECT_EQ(own.at("load").at("blocks"), exec::usableProcessors());
    EXPECT_EQ(own, configOf({"--backend", "cpu"}));
    EXPECT_THAT(own.at("machine").get<std::string>(), testing::StartsWith("this one, "));
    EXPECT_THAT(own.at("machine").get<std::string>(), HasSubstr(config_cache::cpuModelName()));
  }
  const json hopper = configOf({"--arch", "sm_90a"});
  EXPECT_EQ(hopper.at("load").at("blocks"), 132);
  EXPECT_EQ(hopper.at("machine"), "any GPU of sm_90a with 132 multiprocessors");
  EXPECT_EQ(hopper.at("config").at("phases").at(0).at("family"), "sm90");
  EXPECT_EQ(configOf({"--arch", "sm_80"}).at("load").at("blocks"), 264);
  EXPECT_EQ(configOf({"--backend", "cpu", "--blocks", "3"}).at("load").at("blocks"), 3);
  const Outcome unknown = plan("few_shot", {"--arch", "sm_1"});
  EXPECT_EQ(unknown.code, kExitUsage);
  EXPECT_THAT(unknown.err, HasSubstr("unknown architecture `sm_1`"));
}

TEST(PlanCommandTest, TextTellsTheTreeTheItemsAndTheLoad) {
  const Outcome outcome =
      plan("few_shot:prompt=4000,branches=20,iterations=200", {"--step", "200", "--partition", "node"});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("step 200 for llama3_8b"));
  EXPECT_THAT(outcome.out, HasSubstr("21 nodes, 20 queries, 8,000 tokens read"));
  EXPECT_THAT(outcome.out, HasSubstr("partition  node"));
  EXPECT_THAT(outcome.out, HasSubstr("times the mean"));
  EXPECT_THAT(outcome.out, HasSubstr("n20"));
}

/// Of trees for which the untuned choice ships.
TEST(PlanCommandTest, ItTellsTheTimeThatExplainTells) {
  for (const char *tree : {"few_shot", "levels:nodes=1,2,4,8,1024,tokens=16,16,16,16,16"}) {
    const std::vector<std::string> gpu = {"--device", "h200", "--config", DEFT_H200_CONFIGS};
    std::vector<std::string> explain = {"explain", "llama3_8b", "--workload", tree};
    explain.insert(explain.end(), gpu.begin(), gpu.end());
    const std::string why = test::runDeftc(explain).out, shown = plan(tree, gpu).out;
    std::smatch chosen, told;
    ASSERT_TRUE(std::regex_search(why, chosen, std::regex("cost model: ([0-9.]+) us by the model"))) << why;
    ASSERT_TRUE(std::regex_search(shown, told, std::regex("([0-9.]+) us by the cost model"))) << shown;
    EXPECT_EQ(told[1], chosen[1]) << tree;
  }
}

TEST(PlanCommandTest, LongListsAreCutInTextOnly) {
  const std::string workload = "levels:nodes=1,100,tokens=100,50";
  const Outcome text = plan(workload, {"--partition", "node"});
  EXPECT_THAT(text.out, HasSubstr("more items; --as json has all of them"));
  const json all = json::parse(plan(workload, {"--partition", "node", "--as", "json"}).out);
  EXPECT_GT(all["items"].size(), 100U);
}

/// From the JSON alone: every query's path is covered once, and the merge map has its partials.
TEST(PlanCommandTest, JsonCoversEveryPathOnceUnderEveryPartition) {
  for (const char *partition :
       {"query", "node", "node_chunk", "flatten", "cascade", "greedy", "union", "auto"}) {
    SCOPED_TRACE(partition);
    const Outcome levels =
        plan("levels:nodes=2,4,8,tokens=300,20,7", {"--partition", partition, "--as", "json"});
    ASSERT_EQ(levels.code, kExitOk) << levels.err;
    const json plan = json::parse(levels.out);
    EXPECT_NE(plan["partition"], "auto");
    std::map<int, int> tokens, partials;
    for (const json &item : plan["items"]) {
      std::map<int, int> seen;
      for (const json &run : item["runs"])
        for (int q = run["queries"][0]; q < run["queries"][1]; ++q)
          seen[q] += run["tokens"].get<int>();
      for (const auto &[query, count] : seen) {
        tokens[query] += count;
        partials[query] += !item["partial"].is_null();
      }
    }
    ASSERT_EQ(tokens.size(), 8U);
    for (const auto &[query, count] : tokens)
      EXPECT_EQ(count, plan["query_positions"][query].get<int>() + 1) << "query " << query;
    for (const json &merged : plan["merge"])
      EXPECT_EQ(static_cast<int>(merged["slots"].size()), partials[merged["query"]]);
  }
}

TEST(PlanCommandTest, SvgIsWellFormedAndShowsEveryItem) {
  for (const char *workload :
       {"few_shot:prompt=4000,branches=20", "levels:nodes=1,2,4,8,16,32,tokens=16,16,16,16,16,16",
        "token_tree:tokens=64", "no_sharing", "levels:nodes=1,1500,tokens=10,1"}) {
    SCOPED_TRACE(workload);
    const Outcome outcome = plan(workload, {"--as", "svg", "--partition", "greedy", "--arch", "sm_80"});
    ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
    EXPECT_EQ(tagError(outcome.out), "");
    EXPECT_THAT(outcome.out, HasSubstr("<svg xmlns="));
    EXPECT_THAT(outcome.out, HasSubstr("Partition greedy"));
    EXPECT_THAT(outcome.out, HasSubstr("Load of each of 264 blocks"));
    EXPECT_THAT(outcome.out, Not(HasSubstr("nan")));
    EXPECT_LT(outcome.out.size(), 3U << 20);
  }
  const std::string few = plan("few_shot:prompt=400,branches=4", {"--as", "svg", "--partition", "node"}).out;
  for (const char *text : {"item 0:", "item 4:", "n0: 400 tokens", "writes partials"})
    EXPECT_THAT(few, HasSubstr(text));
  EXPECT_THAT(plan("levels:nodes=1,1500,tokens=10,1", {"--as", "svg"}).out,
              HasSubstr("The first 1,200 of 1,500 queries are drawn."));
}

TEST(PlanCommandTest, APageShowsOnePlanOrTwo) {
  const std::string workload = "few_shot:prompt=400,branches=4";
  const Outcome one = plan(workload, {"--as", "html", "--partition", "node", "--arch", "sm_90a"});
  ASSERT_EQ(one.code, kExitOk) << one.err;
  EXPECT_THAT(one.out, testing::StartsWith("<!doctype html>"));
  EXPECT_THAT(one.out, HasSubstr("<title>Plan of " + workload));
  EXPECT_THAT(one.out, HasSubstr("\"label\":\"node\""));
  const Outcome two = plan(workload, {"--as", "html", "--partition", "node", "--arch", "sm_90a", "--against",
                                      "partition=query", "--against", "chunk=64", "--against", "arch=sm_80"});
  ASSERT_EQ(two.code, kExitOk) << two.err;
  EXPECT_THAT(two.out, HasSubstr("<title>Plans of " + workload));
  EXPECT_THAT(two.out, HasSubstr("\"label\":\"query, chunk=64, arch=sm_80\""));
  EXPECT_THAT(two.out, HasSubstr("any GPU of sm_90a"));
  EXPECT_THAT(two.out, HasSubstr("any GPU of sm_80"));
}

TEST(PlanCommandTest, OnlyAPageHasASecondPlan) {
  const Outcome text = plan("few_shot", {"--against", "partition=node"});
  EXPECT_EQ(text.code, kExitUsage);
  EXPECT_THAT(text.err, HasSubstr("--against shows two plans on one page, and text has one"));
  EXPECT_THAT(text.err, HasSubstr("give --as html, or a file that ends in .html"));
  const Outcome wrong = plan("few_shot", {"--as", "html", "--against", "partition=nodes"});
  EXPECT_EQ(wrong.code, kExitUsage);
  EXPECT_THAT(wrong.err, HasSubstr("--against `partition=nodes` has a wrong value"));
}

TEST(PlanCommandTest, TreeFilesGiveNamesToNodesAndTheOutputGoesToAFile) {
  const module_cache::TestFolder folder;
  const std::string tree = folder.path("tree.json"), picture = folder.path("tree.svg");
  std::ofstream(tree) << R"({"format": "deftc-tree", "version": 2,
    "nodes": [{"parent": -1, "tokens": 200, "name": "a <b> & \"c\""}, {"parent": 0, "tokens": 0},
              {"parent": 0, "tokens": 3}],
    "queries": [{"node": 1}, {"node": 0, "position": 0}]})";
  const Outcome text = test::runDeftc({"plan", "llama3_8b", "--tree", tree});
  EXPECT_EQ(text.code, kExitOk) << text.err;
  EXPECT_THAT(text.out, HasSubstr("a <b> & \"c\""));
  const Outcome drawn = test::runDeftc({"plan", "llama3_8b", "--tree", tree, "-o", picture});
  EXPECT_EQ(drawn.code, kExitOk) << drawn.err;
  EXPECT_EQ(drawn.out + drawn.err, "");
  std::ostringstream svg;
  svg << std::ifstream(picture).rdbuf();
  EXPECT_EQ(tagError(svg.str()), "");
  EXPECT_THAT(svg.str(), HasSubstr("a &lt;b&gt; &amp; &quot;c&quot;"));
  EXPECT_THAT(svg.str(), HasSubstr("1 node that no query sees is left out"));
}

TEST(PlanCommandTest, TheFilesNameSaysWhatIsWrittenUnlessItIsAskedFor) {
  const module_cache::TestFolder folder;
  const std::string file = folder.path("plan.svg"), unknown = folder.path("plan.pdf");
  const Outcome asked = plan("few_shot:prompt=400,branches=4", {"--as", "json", "-o", file});
  EXPECT_EQ(asked.code, kExitOk) << asked.err;
  EXPECT_EQ(asked.err, "warning: `" + file + "` gets json, as --as says, not svg\n");
  EXPECT_TRUE(json::accept(module_cache::readText(file)));
  const Outcome refused = plan("few_shot:prompt=400,branches=4", {"-o", unknown});
  EXPECT_EQ(refused.code, kExitUsage);
  EXPECT_THAT(refused.err, HasSubstr("known endings are .txt, .json, .svg, .html"));
  EXPECT_FALSE(std::filesystem::exists(unknown));
}

TEST(PlanCommandTest, ATreeWithoutQueriesIsAnEmptyPlan) {
  const module_cache::TestFolder folder;
  const std::string tree = folder.path("empty.json");
  std::ofstream(tree) << R"({"format": "deftc-tree", "version": 1, "nodes": [], "queries": []})";
  for (const char *form : {"text", "json", "svg", "html"}) {
    const Outcome outcome = test::runDeftc({"plan", "llama3_8b", "--tree", tree, "--as", form});
    EXPECT_EQ(outcome.code, kExitOk) << form << ": " << outcome.err;
  }
}

/// A chain of `count` nodes of 4 tokens; a query on each `step`th. Its file is gone with it.
class ChainFile {
public:
  ChainFile(int count, int step, const std::string &name)
      : path_((std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + name)).string()) {
    std::ofstream file(path_);
    file << R"({"format": "deftc-tree", "version": 1, "nodes": [)";
    for (int i = 0; i < count; ++i)
      file << (i > 0 ? "," : "") << R"({"parent": )" << i - 1 << R"(, "tokens": 4})";
    file << R"(], "queries": [)";
    for (int i = step - 1; i < count; i += step)
      file << (i >= step ? "," : "") << R"({"node": )" << i << "}";
    file << "]}";
  }
  ~ChainFile() { std::filesystem::remove(path_); }
  const std::string &path() const { return path_; }

private:
  std::string path_;
};

// A walk up for each run or query would take 5,000,000,000 steps.
TEST(PlanCommandTest, ALongChainTakesTimeByItsNodes) {
  constexpr int kNodes = 100'000;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr double kMostSeconds =
      40; // of the processor; a plan that walks up for each run takes ten times as long
#else
  constexpr double kMostSeconds = 6;
#endif
  const ChainFile chain(kNodes, kNodes, "-chain.json");
  const std::clock_t start = std::clock();
  const Outcome outcome =
      test::runDeftc({"plan", "llama3_8b", "--tree", chain.path(), "--arch", "sm_80", "--as", "json"});
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, kMostSeconds);
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  int next = 0; // each node's tokens are one run, in the order of the path
  std::map<int, int> nodes;
  const json report = json::parse(outcome.out);
  for (const json &item : report["items"])
    for (const json &run : item["runs"]) {
      EXPECT_EQ(run["begin"], 0);
      EXPECT_EQ(run["tokens"], 4);
      ++nodes[run["node"].get<int>()];
    }
  for (const auto &[node, count] : nodes)
    EXPECT_TRUE(node == next++ && count == 1) << node;
  EXPECT_EQ(next, kNodes);
}

TEST(PlanCommandTest, APictureShowsWhoReadsTheNodesOfAChain) {
  const ChainFile chain(6, 2, "-\xff.json");
  const Outcome outcome = test::runDeftc({"plan", "llama3_8b", "--tree", chain.path(), "--as", "svg"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_EQ(tagError(outcome.out), "");
  EXPECT_THAT(outcome.out, HasSubstr("-\xEF\xBF\xBD.json")) << "a name that is no UTF-8";
  EXPECT_THAT(outcome.out, Not(HasSubstr("\xff")));
  // Two nodes of each height: those that three, two and one query see.
  std::map<std::string, int> heights;
  static const std::regex outline(
      "height=\"([0-9.]+)\" fill=\"none\" stroke=\"#444\" stroke-width=\"0.9\" pointer");
  for (auto found = std::sregex_iterator(outcome.out.begin(), outcome.out.end(), outline);
       found != std::sregex_iterator(); ++found)
    ++heights[(*found)[1]];
  EXPECT_EQ(heights, (std::map<std::string, int>{{"24", 2}, {"48", 2}, {"72", 2}}));
}

TEST(PlanCommandTest, WrongArgumentsAreUsageErrors) {
  EXPECT_THAT(plan("few_shot", {"--blocks", "2147483647"}).err,
              HasSubstr("`2147483647` is not a whole number from 1 to 1048576"));
  EXPECT_EQ(test::runDeftc({"plan", "llama3_8b"}).code, kExitUsage);
  EXPECT_THAT(test::runDeftc({"plan", "llama3_8b"}).err, HasSubstr("give --tree FILE or --workload NAME"));
  EXPECT_EQ(plan("few_shot", {"--tree", "x.json"}).code, kExitUsage);
  EXPECT_EQ(plan("few_shot", {"--partition", "nodes"}).code, kExitUsage);
  EXPECT_EQ(plan("few_shot", {"--as", "png"}).code, kExitUsage);
  EXPECT_NE(plan("few_shots").code, kExitOk);
  EXPECT_NE(plan("few_shot:iterations=5", {"--step", "6"}).code, kExitOk);
}

TEST(BenchCommandTest, IoJsonHasDeftsFigures) {
  const Outcome outcome = test::runDeftc({"bench", "deft", "--io", "--json", "-"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  const json table = json::parse(outcome.out);
  const double expected[3][3] = {{20, 1.68, 17.62}, {30, 2.10, 26.43}, {50, 2.94, 44.05}};
  ASSERT_EQ(table["few_shot"].size(), 3U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(table["few_shot"][i]["b"], expected[i][0]);
    EXPECT_NEAR(table["few_shot"][i]["shared_tb"].get<double>() / expected[i][1], 1, 0.01);
    EXPECT_NEAR(table["few_shot"][i]["query_tb"].get<double>() / expected[i][2], 1, 0.01);
  }
  EXPECT_EQ(table["left_out"].size(), 8U);
}

TEST(BenchCommandTest, IoTextSaysWhatIsLeftOut) {
  const Outcome outcome = test::runDeftc({"bench", "deft", "--io"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("b = 20"));
  EXPECT_THAT(outcome.out, HasSubstr("17.62"));
  EXPECT_THAT(outcome.out, HasSubstr("left out, as no record was found: reasoning_sorting"));
  EXPECT_EQ(test::runDeftc({"bench", "deft"}).code, kExitUsage);
  EXPECT_EQ(test::runDeftc({"bench", "deft", "--io", "--workloads", "/nowhere"}).code, kExitEnvironment);
}

} // namespace
} // namespace deft::cli
