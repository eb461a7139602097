#include "tuner/replay/TreeSteps.h"

#include "runtime/tree/TreeFile.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

namespace deft::replay {
namespace {

constexpr const char *kName = "beam_search:prompt=20,beams=5,churn=30,steps=12";

TEST(TreeStepsTest, AFileIsOneStep) {
  const module_cache::TestFolder folder;
  tree::KvTree tree;
  ASSERT_TRUE(tree.addQuery(tree.addNode(tree.addNode(-1, 40).value(), 5).value()));
  ASSERT_TRUE(tree::writeTreeFile(folder.path("t.json"), tree));
  auto steps = TreeSteps::ofFile(folder.path("t.json"));
  ASSERT_TRUE(steps) << steps.error().message;
  EXPECT_EQ(steps->name(), folder.path("t.json"));
  EXPECT_EQ(tree::formatTree(steps->tree()), tree::formatTree(tree));
  EXPECT_EQ(steps->step(), 1);
  EXPECT_EQ(steps->stepsLeft(), 0);
  EXPECT_FALSE(*steps->next());
  EXPECT_TRUE(steps->seek(1));
  EXPECT_TRUE(steps->edits().empty());
  EXPECT_FALSE(TreeSteps::ofFile(folder.path("none.json")));
}

TEST(TreeStepsTest, AWorkloadsStepsAreItsOwn) {
  auto steps = TreeSteps::ofWorkload(kName, 7, "");
  auto workload = workload::make(kName, 7);
  ASSERT_TRUE(steps && workload);
  EXPECT_EQ(steps->name(), workload->name());
  for (int step = 1;; ++step) {
    EXPECT_EQ(steps->step(), step);
    EXPECT_EQ(steps->stepsLeft(), 12 - step);
    EXPECT_EQ(tree::formatTree(steps->tree()), tree::formatTree(workload->tree())) << step;
    EXPECT_EQ(steps->edits(), workload->edits()) << step;
    const auto more = steps->next();
    ASSERT_TRUE(more);
    ASSERT_EQ(*more, *workload->next());
    if (!*more)
      break;
  }
  ASSERT_TRUE(steps->seek(3));
  ASSERT_TRUE(workload->seek(3));
  EXPECT_EQ(steps->stepsLeft(), 9);
  EXPECT_EQ(tree::formatTree(steps->tree()), tree::formatTree(workload->tree()));
}

TEST(TreeStepsTest, AWorkloadThatThereIsNotIsAnError) {
  EXPECT_FALSE(TreeSteps::ofWorkload("beam_serch", 7, ""));
  EXPECT_FALSE(TreeSteps::ofWorkload("beam_search:beams=0", 7, ""));
}

} // namespace
} // namespace deft::replay
