#include "tuner/session/WarmUp.h"

#include "tests/support/ScalarKernel.h"
#include "tests/unit/tuner/session/StepTesting.h"
#include "tuner/space/MakeSpace.h"

#include <gmock/gmock.h>

namespace deft::session {
namespace {

using test::configOf;

std::vector<int> chunksOf(const std::vector<config::Config> &configs) {
  std::vector<int> chunks;
  for (const config::Config &config : configs)
    chunks.push_back(config.chunkTokens);
  return chunks;
}

TEST(WarmUpTest, WhereAllIsKnownNothingElseIsCompiled) {
  const auto space = space::makeSpace(test::ScalarKernel<4, 2, 16>::variant(), {});
  Related known;
  known.isKnown = true;
  known.ofClass = {configOf(2)};
  known.neighbours = {configOf(3)};
  EXPECT_THAT(chunksOf(firstConfigs({configOf(1)}, std::vector{known, known}, *space)),
              testing::ElementsAre(1, 2, 3, 2, 3));
}

TEST(WarmUpTest, WhatOnlyLargeTreesAreWeighedWithIsNotCompiledAhead) {
  const auto space = space::makeSpace(test::ScalarKernel<4, 2, 16>::variant(), {});
  config::Config large = configOf(2);
  large.phases.front().tileQ = 192;
  Related known;
  known.isKnown = true;
  EXPECT_THAT(chunksOf(firstConfigs({configOf(1), large}, std::vector{known}, *space)),
              testing::ElementsAre(1));
}

TEST(WarmUpTest, ASearchBeginsWithTypicalKernels) {
  const auto space = space::makeSpace(test::ScalarKernel<4, 2, 16>::variant(), {});
  Related known;
  known.isKnown = true;
  EXPECT_GT(firstConfigs({configOf(1)}, std::vector{known, Related()}, *space).size(), 1U);
}

TEST(WarmUpTest, WhereNothingIsCompiledNobodyWaits) {
  CompilePool none({}, 0, 1);
  warmUp(none, {configOf(1)}, std::chrono::steady_clock::time_point::max(), [](int) {
    ADD_FAILURE() << "there is nothing to wait for";
    return false;
  });
}

TEST(WarmUpTest, ItTakesNoMoreThanAShareOfTheBudget) {
  EXPECT_DOUBLE_EQ(warmUpSeconds(60), 12);
  EXPECT_DOUBLE_EQ(warmUpSeconds(3600), 30);
  EXPECT_DOUBLE_EQ(warmUpSeconds(0), 30);
}

} // namespace
} // namespace deft::session
