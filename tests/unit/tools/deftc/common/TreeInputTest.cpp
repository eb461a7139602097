#include "tools/deftc/common/TreeInput.h"

#include "runtime/tree/TreeFile.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include <sstream>

namespace deft::cli {
namespace {

constexpr const char *kWorkload = "beam_search:prompt=20,beams=5,churn=30,steps=12";

class TreeInputTest : public testing::Test {
protected:
  /// What the options of a command become; the parser's error where it has one.
  std::string parse(std::vector<std::string> arguments) {
    CLI::App app;
    addTreeOptions(app, options);
    try {
      app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::ParseError &error) {
      return error.what();
    }
    return "";
  }

  module_cache::TestFolder folder;
  TreeOptions options;
  std::ostringstream out, err;
  Context context{out, err, false, false, {}, false};
};

TEST_F(TreeInputTest, ATreeFileIsKnownByWhatIsInIt) {
  module_cache::writeText(folder.path("any"), R"({"format": "deftc-tree", "version": 1})");
  module_cache::writeText(folder.path("my.json"), R"({"format": "deftc-run"})");
  EXPECT_TRUE(isTreeFile(folder.path("any")));
  EXPECT_FALSE(isTreeFile(folder.path("my.json")));
  EXPECT_FALSE(isTreeFile(folder.path("")));
  EXPECT_FALSE(isTreeFile("llama3_8b"));
}

TEST_F(TreeInputTest, AFileGivesATreeWithItsNames) {
  module_cache::writeText(folder.path("t.json"), R"({"format": "deftc-tree", "version": 2,
    "nodes": [{"parent": -1, "tokens": 20, "name": "system"}, {"parent": 0, "tokens": 3}],
    "queries": [{"node": 1}]})");
  ASSERT_EQ(parse({"--tree", folder.path("t.json")}), "");
  ASSERT_TRUE(options.isGiven());
  const auto tree = openTree(context, options);
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->name, "t.json");
  EXPECT_EQ(tree->nodeNames, (std::vector<std::string>{"system", ""}));
  EXPECT_EQ(tree->tree.tokens(), 23);
  EXPECT_FALSE(context.files.writes(folder.path("t.json"))) << "it has been read";
}

TEST_F(TreeInputTest, AWorkloadIsAtItsStep) {
  ASSERT_EQ(parse({"--workload", kWorkload, "--step", "5", "--seed", "7"}), "");
  const auto tree = openTree(context, options);
  ASSERT_TRUE(tree) << tree.error().message;
  auto workload = workload::make(kWorkload, 7);
  ASSERT_TRUE(workload->seek(5));
  EXPECT_EQ(tree::formatTree(tree->tree), tree::formatTree(workload->tree()));
  EXPECT_EQ(tree->name, workload->name() + ", step 5");
  options.step = 13;
  EXPECT_FALSE(openTree(context, options)) << "it has 12";
}

TEST_F(TreeInputTest, ThereIsOneTreeAndNoMore) {
  EXPECT_NE(parse({"--tree", "a", "--workload", "b"}), "");
  EXPECT_NE(parse({"--step", "0"}), "");
  EXPECT_NE(parse({"--tree", "a", "--step", "2"}), "") << "a tree is one step";
  const auto none = openTree(context, {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, support::ErrorCode::Usage);
  EXPECT_EQ(none.error().message, "no tree is given");
  for (const TreeOptions &absent :
       {TreeOptions{.tree = folder.path("none.json"), .workload = {}, .workloads = {}},
        {.tree = {}, .workload = "few_shot", .workloads = folder.path("none")}})
    EXPECT_EQ(openTree(context, absent).error().code, support::ErrorCode::Environment);
}

} // namespace
} // namespace deft::cli
