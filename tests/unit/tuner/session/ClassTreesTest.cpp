#include "tuner/session/ClassTrees.h"

#include "tests/support/Forest.h"
#include "tests/support/ScalarKernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::session {
namespace {

using test::levelTree;

std::vector<std::string> namesOf(const TreesOfClass &trees) {
  std::vector<std::string> names;
  for (const Sample *sample : trees.samples)
    names.push_back(sample->name);
  return names;
}

TEST(ClassTreesTest, OfManyTreesSomeAreTakenEvenlyAndHeldOutOnesStandBehind) {
  std::vector<Sample> samples;
  for (int i = 0; i < 5; ++i)
    samples.push_back({"s" + std::to_string(i), 0, levelTree({1, 4}, {40 + i % 2, 9}), false});
  samples.insert(samples.begin(), {"held", 0, levelTree({1, 4}, {41, 9}), true});
  const auto classes = groupSamples(samples, {}, 3);
  ASSERT_EQ(classes.size(), 1U);
  EXPECT_EQ(classes[0].searched, 3);
  EXPECT_THAT(namesOf(classes[0]), testing::ElementsAre("s0", "s2", "s4", "held"));
}

TEST(ClassTreesTest, AClassOfHeldOutTreesAloneIsNone) {
  EXPECT_TRUE(groupSamples({{"held", 0, levelTree({1, 4}, {41, 9}), true}}, {}, 3).empty());
}

TEST(ClassTreesTest, ASessionAddsTreesLikeThoseGivenUnlessItRecords) {
  TuneInput input;
  input.variant = test::ScalarKernel<4, 2, 16>::variant();
  input.samples = {{"few", 0, levelTree({1, 4}, {40, 9}), false}};
  TuneOptions options;
  const SessionTrees more = treesOf(input, options);
  ASSERT_EQ(more.classes.size(), 1U);
  EXPECT_EQ(more.classes[0].searched, 2);
  EXPECT_GE(more.classes[0].samples.size(), 6U);
  EXPECT_GT(more.classes[0].samples[1]->similar, 0U);
  options.recordFolder = "somewhere";
  EXPECT_EQ(treesOf(input, options).samples.size(), 1U);
}

TEST(OpeningsTest, WhatInputsTakeIsLearntFromThoseThatWereMade) {
  spec::Variant variant;
  variant.kvHeads = 8;
  variant.tensors = spec::Tensors::alike(128); // 4 KB a token
  const Sample large{"large", 0, levelTree({1}, {100'000}), false},
      small{"small", 0, levelTree({1}, {100}), false};
  const TreesOfClass ofLarge{{}, {&large}, 1}, ofSmall{{}, {&small}, 1};
  Openings openings(variant, /*isShared=*/false);
  const double before = openings.expected(ofLarge);
  openings.learn(ofSmall, 100); // it is not the bytes that take the time
  EXPECT_DOUBLE_EQ(openings.expected(ofLarge), before);
  openings.learn(ofLarge, 10 * before);
  EXPECT_GT(openings.expected(ofLarge), 2 * before);
  EXPECT_NEAR(openings.expected(ofLarge) / openings.expected(ofSmall), 1000, 1e-6);
  EXPECT_EQ(Openings(variant, /*isShared=*/true).expected(ofLarge), 0);
}

} // namespace
} // namespace deft::session
