#include <deft/deft.hpp>

#include "tests/support/SetVariable.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace deft {
namespace {

using testing::Contains;
using testing::HasSubstr;

class TunerTest : public testing::Test {
protected:
  Attention load() const { return loadPackage(DEFT_TEST_PACKAGE).value(); }
  TuneOptions few() const {
    return {.device = TuneDevice::Cpu, .candidates = 6, .threads = 1, .note = "a test"};
  }
  Tree sample(int branchTokens) const {
    Tree tree;
    const int prompt = tree.addRoot(40, 0).value();
    for (int i = 0; i < 3; ++i)
      (void)tree.addQuery(tree.addChild(prompt, branchTokens, 64 * (i + 1)).value()).value();
    return tree;
  }

  module_cache::TestFolder folder;
  test::SetVariable cache{"DEFT_CACHE_DIR", folder.path("cache")};
};

TEST_F(TunerTest, WhatItFindsIsWhatLaterPlansAreMadeWith) {
  const Tree tree = sample(9);
  ASSERT_EQ(Plan::make(load(), tree, {.workers = 1}).value().choice().rule, "heuristic");
  auto tuner = Tuner::make(load(), few()).value();
  tuner.addTree(tree).value();
  tuner.addTree(sample(10), "another", /*isHeldOut=*/true).value();
  int told = 0;
  std::vector<std::string> notes;
  const TuneSummary summary = tuner
                                  .run({.progress =
                                            [&](const TuneProgress &progress) {
                                              ++told;
                                              EXPECT_LE(progress.measured, 6);
                                            },
                                        .note = [&](const std::string &line) { notes.push_back(line); }})
                                  .value();
  EXPECT_EQ(summary.end, TuneEnd::Complete);
  EXPECT_GT(told, 6);
  EXPECT_THAT(notes, Contains(HasSubstr("combinations")));
  ASSERT_EQ(summary.classes.size(), 1U);
  const TunedClass &one = summary.classes.front();
  EXPECT_TRUE(one.isDone);
  EXPECT_EQ(one.candidates, 6);
  EXPECT_GT(one.untunedUs, 0);
  EXPECT_LE(one.tunedUs, one.untunedUs);
  EXPECT_THAT(one.config, HasSubstr("\"partition\""));
  EXPECT_GT(summary.measured, 6);
  EXPECT_TRUE(std::filesystem::exists(summary.journal));
  EXPECT_THAT(summary.configFile, HasSubstr(folder.path("cache")));
  const ConfigChoice choice = Plan::make(load(), tree, {.workers = 1}).value().choice();
  EXPECT_EQ(choice.rule, "exact");
  EXPECT_EQ(choice.file, summary.configFile);
  EXPECT_EQ(choice.treeClass, one.treeClass);
}

TEST_F(TunerTest, GoesOnWhereItWasCancelled) {
  auto options = few();
  options.journal = folder.path("journal.jsonl");
  auto tuner = Tuner::make(load(), options).value();
  tuner.addTree(sample(9)).value();
  int measured = 0; // of six; how often it is asked depends on how soon the slow ones are dropped
  const TuneSummary first = tuner
                                .run({.progress = [&](const TuneProgress &at) { measured = at.measured; },
                                      .isCancelled = [&] { return measured >= 2; }})
                                .value();
  EXPECT_EQ(first.end, TuneEnd::Cancelled);
  ASSERT_EQ(first.classes.size(), 1U);
  EXPECT_FALSE(first.classes[0].isDone);
  EXPECT_GT(first.measured, 0);
  const TuneSummary second = tuner.run().value();
  EXPECT_EQ(second.end, TuneEnd::Complete);
  EXPECT_EQ(second.reused, first.measured);
  EXPECT_TRUE(second.classes[0].isDone);
}

TEST_F(TunerTest, WorkloadsAreKnownByName) {
  EXPECT_THAT(Tuner::families(), Contains("few_shot"));
  auto tuner = Tuner::make(load(), few()).value();
  EXPECT_TRUE(tuner.addWorkload("few_shot:prompt=60,branches=3,step=2").ok());
  const auto unknown = tuner.addWorkload("few_shots");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().hint, HasSubstr("few_shot"));
  EXPECT_EQ(tuner.run().value().classes.size(), 1U);
}

TEST_F(TunerTest, WhatIsMissingIsAnError) {
  auto tuner = Tuner::make(load(), few()).value();
  const auto empty = tuner.run();
  ASSERT_FALSE(empty.ok());
  EXPECT_EQ(empty.error().code, ErrorCode::Usage);
  Tree tree;
  (void)tree.addRoot(10, 0).value();
  EXPECT_FALSE(tuner.addTree(tree).ok());
  EXPECT_FALSE(Tuner::make(load(), {.budgetSeconds = -1}).ok());
  const auto foreign = tuner.setParams(Params(load()));
  ASSERT_FALSE(foreign.ok());
  EXPECT_THAT(foreign.error().message, HasSubstr("another attention"));
}

TEST_F(TunerTest, AProcessorsPackageHasNothingForAGpu) {
  auto options = few();
  options.device = TuneDevice::Gpu;
  auto tuner = Tuner::make(load(), options).value();
  tuner.addTree(sample(9)).value();
  EXPECT_FALSE(tuner.run().ok());
}

} // namespace
} // namespace deft
