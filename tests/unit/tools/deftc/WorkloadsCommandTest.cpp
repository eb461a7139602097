#include "runtime/tree/TreeFile.h"
#include "tests/support/RunDeftc.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"
#include "tools/deftc/common/Context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace deft::cli {
namespace {

using test::Outcome;

using testing::HasSubstr;

Outcome run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "workloads");
  return test::runDeftc(std::move(arguments));
}

class WorkloadsCommandTest : public testing::Test {
protected:
  WorkloadsCommandTest() {
    std::ofstream(folder_.path("search.json"))
        << R"({"format":"recorded-tree/1","name":"search","columns":["parent","tokens","first_step","last_step"],
               "trees":[{"nodes":[[-1,10,-9,0],[0,3,1,3],[0,5,1,5]]}]})";
  }

  module_cache::TestFolder folder_;
};

TEST_F(WorkloadsCommandTest, ListsOneALine) {
  const Outcome outcome = run({});
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_THAT(outcome.out, HasSubstr("few_shot        one prompt, branches that sample from it"));
  EXPECT_THAT(outcome.out, HasSubstr("\nmixture         several workloads"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("\nsearch")));
  EXPECT_THAT(run({"--workloads", folder_.path()}).out,
              HasSubstr("search          recorded: 1 search, step by step\n"));
}

TEST_F(WorkloadsCommandTest, DescribesOne) {
  const Outcome outcome = run({"few_shot"});
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_THAT(outcome.out, HasSubstr("  branches    20    branches\n"));
  EXPECT_THAT(outcome.out,
              HasSubstr("step 1 of 400: 20 queries, 21 nodes in 2 levels, 4020 tokens, each read "
                        "by 19.9 queries on average\n"));
}

TEST_F(WorkloadsCommandTest, WritesTheTreeOfAStep) {
  const std::string path = folder_.path("tree.json");
  const Outcome outcome = run({"levels", "nodes=1,4", "tokens=100,10", "--step", "3", "-o", path});
  EXPECT_EQ(outcome.code, kExitOk) << outcome.err;
  const auto tree = tree::readTreeFile(path);
  ASSERT_TRUE(tree) << tree.error().message;
  EXPECT_EQ(tree->tokens(), 100 + 4 * 12);
  EXPECT_EQ(tree->queries().size(), 4u);
  EXPECT_EQ(run({"levels:nodes=1,4,tokens=100,10", "--step", "3", "-o", "-"}).out, tree::formatTree(*tree));
}

TEST_F(WorkloadsCommandTest, RecordedOnesToo) {
  const Outcome outcome = run({"search", "--workloads", folder_.path(), "--step", "4", "-o", "-"});
  ASSERT_EQ(outcome.code, kExitOk) << outcome.err;
  const auto tree = tree::parseTree(outcome.out);
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->tokens(), 10 + 3 + 4);
  EXPECT_EQ(tree->queries().size(), 1u);
}

TEST_F(WorkloadsCommandTest, TheSeedIsThatOfTheTree) {
  const auto tree = [](const char *seed) { return run({"multi_document", "--seed", seed, "-o", "-"}).out; };
  EXPECT_EQ(tree("3"), tree("3"));
  EXPECT_NE(tree("3"), tree("4"));
}

TEST_F(WorkloadsCommandTest, ErrorsAreUsage) {
  Outcome outcome = run({"few_shoot"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("did you mean `few_shot`?"));
  EXPECT_EQ(run({"few_shot", "--step", "401"}).code, kExitUsage);
  EXPECT_EQ(run({"few_shot", "--step", "0"}).code, kExitUsage);
  EXPECT_EQ(run({"few_shot", "branch=4"}).code, kExitUsage);
  EXPECT_EQ(run({"-o", "tree.json"}).code, kExitUsage);
  EXPECT_EQ(run({"--workloads", folder_.path("missing")}).code, kExitEnvironment);
}

} // namespace
} // namespace deft::cli
