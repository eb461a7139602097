// As a program sees it, in C++ and in C, on the tests' driver.
#include <deft/deft.h>
#include <deft/deft.hpp>

#include "tests/support/SetVariable.h"
#include "tests/support/SmallBudget.h"
#include "tests/unit/runtime/api/c/TestHandles.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace deft {
namespace {

using testing::HasSubstr;

class TuneSparseTest : public testing::Test {
protected:
  void SetUp() override { test::writeWithSmallBudget(DEFT_TEST_SELECTING_PACKAGE, path_); }

  Attention load() const { return loadPackage(path_).value(); }
  static TuneOptions onGpu() { return {.device = TuneDevice::Gpu, .candidates = 1, .threads = 1}; }

  module_cache::TestFolder folder_;
  test::SetVariable cache_{"DEFT_CACHE_DIR", folder_.path("cache")};
  test::SetVariable kernels_{"DEFT_FAKE_CUDA_VARIANT", "4,2,64,16,bf16,0.25,2,2"};
  std::string path_ = folder_.path("p.deftpkg");
};

TEST_F(TuneSparseTest, WithoutTreesItIsSparseLayersAlone) {
  auto tuner = Tuner::make(load(), onGpu()).value();
  std::vector<TuneProgress> told;
  const TuneSummary summary =
      tuner.run({.progress = [&](const TuneProgress &progress) { told.push_back(progress); }}).value();
  EXPECT_EQ(summary.end, TuneEnd::Complete);
  EXPECT_THAT(summary.device, HasSubstr("sm_90"));
  EXPECT_TRUE(summary.classes.empty());
  EXPECT_EQ(summary.journal, "");
  ASSERT_TRUE(summary.sparse);
  const TunedSparse &sparse = *summary.sparse;
  EXPECT_EQ(sparse.tileTokens, 64);
  EXPECT_EQ(sparse.stages, 2);
  EXPECT_EQ(sparse.warps, 4);
  EXPECT_TRUE(sparse.isPackaged);
  EXPECT_EQ(sparse.end, TuneEnd::Complete);
  EXPECT_EQ(sparse.known, 0);
  ASSERT_EQ(sparse.lists.size(), 12u);
  EXPECT_EQ(sparse.lists[1].budget, 80);
  EXPECT_EQ(sparse.lists[1].queries, 2);
  EXPECT_EQ(sparse.lists[1].itemTokens, 0); // all take as long here
  EXPECT_GT(sparse.lists[1].untunedUs, 0);
  EXPECT_DOUBLE_EQ(sparse.lists[1].gain, sparse.lists[1].untunedUs / sparse.lists[1].tunedUs);
  EXPECT_TRUE(std::filesystem::exists(sparse.file));
  EXPECT_THAT(sparse.file, HasSubstr(folder_.path("cache/sparse")));
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back().stage, "sparse");
  EXPECT_EQ(told.back().measured + told.back().left, 12);
  EXPECT_LT(told.back().secondsLeft, 0);
  // This process has not used CUDA, so it may tune once more, and trees, too.
  const TuneSummary again = tuner.run().value();
  EXPECT_EQ(again.sparse->known, 12);
  EXPECT_TRUE(again.sparse->lists.empty());
}

TEST_F(TuneSparseTest, ItEndsWhereItIsCancelledOrItsTimeIsOver) {
  auto tuner = Tuner::make(load(), onGpu()).value();
  const TuneSummary cancelled = tuner.run({.isCancelled = [] { return true; }}).value();
  EXPECT_EQ(cancelled.end, TuneEnd::Cancelled);
  EXPECT_EQ(cancelled.sparse->end, TuneEnd::Cancelled);
  TuneOptions options = onGpu();
  options.budgetSeconds = 1e-3;
  const TuneSummary late = Tuner::make(load(), options).value().run().value();
  EXPECT_EQ(late.end, TuneEnd::Budget);
  EXPECT_TRUE(late.sparse->lists.empty());
  EXPECT_EQ(late.sparse->file, "");
}

TEST_F(TuneSparseTest, BehindTreesOnlyWhatTheyLeaveIsTuned) {
  Tree tree;
  (void)tree.addQuery(tree.addRoot(100, 0).value()).value();
  TuneOptions options = onGpu();
  options.configFile = folder_.path("configs.json");
  options.budgetSeconds = 1e-3; // enough to say what would be tuned
  auto tuner = Tuner::make(load(), options).value();
  tuner.addTree(tree).value();
  if (const auto tuned = tuner.run(); tuned.ok()) {
    EXPECT_FALSE(tuned.value().sparse) << "it goes to a file of configs";
  }
  options.configFile.clear();
  auto both = Tuner::make(load(), options).value();
  both.addTree(tree).value();
  const auto summary = both.run();
  if (!summary.ok()) // without NVRTC trees are not tuned
    GTEST_SKIP() << summary.error().message;
  ASSERT_TRUE(summary.value().sparse);
  EXPECT_EQ(summary.value().sparse->end, TuneEnd::Budget);
  EXPECT_FALSE(summary.value().classes.empty());
}

TEST_F(TuneSparseTest, InCItIsTheSame) {
  using namespace c_test;
  const auto attention = made<AttentionHandle>(deft_attention_load_package, path_.c_str(), nullptr);
  auto options = sized<deft_tune_options>();
  options.device = DEFT_TUNE_GPU;
  options.threads = 1;
  const auto tuner = made<TunerHandle>(deft_tuner_make, attention.get(), &options);
  const auto summary = made<Owned<deft_tune_summary>>(deft_tuner_run, tuner.get(), nullptr);
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->class_count, 0u);
  ASSERT_NE(summary->sparse, nullptr);
  const deft_tuned_sparse &sparse = *summary->sparse;
  EXPECT_EQ(sparse.size, sizeof sparse);
  EXPECT_EQ(sparse.tile_tokens, 64);
  EXPECT_EQ(sparse.stages, 2);
  EXPECT_EQ(sparse.warps, 4);
  EXPECT_EQ(sparse.is_packaged, 1);
  EXPECT_EQ(sparse.end, DEFT_TUNE_COMPLETE);
  EXPECT_GT(sparse.seconds, 0);
  EXPECT_GT(sparse.tile_gain, 0);
  EXPECT_TRUE(std::filesystem::exists(sparse.file));
  ASSERT_EQ(sparse.list_count, 12u);
  const deft_tuned_lists &lists = *sparse.lists[1];
  EXPECT_EQ(lists.size, sizeof lists);
  EXPECT_EQ(lists.budget, 80);
  EXPECT_EQ(lists.queries, 2);
  EXPECT_EQ(lists.item_tokens, 0);
  EXPECT_GT(lists.untuned_us, 0);
  EXPECT_GT(lists.tuned_us, 0);
  EXPECT_GT(lists.gain, 0);
}

} // namespace
} // namespace deft
