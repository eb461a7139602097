#include "tuner/search/Surrogate.h"

#include "compiler/config/DevicePrices.h"
#include "tuner/space/MakeSpace.h"

#include <gtest/gtest.h>

#include <cmath>

namespace deft::search {
namespace {

using space::Point;
using space::Space;

Space makeSpace() {
  spec::Variant variant;
  variant.name = "test";
  variant.queryHeads = 8;
  variant.kvHeads = 2;
  variant.tensors = spec::Tensors::alike(64);
  return *space::makeSpace(variant, {nullptr, config::processorPrices(2)});
}

TEST(SurrogateTest, BelievesWhatItWasToldAndDoubtsWhatIsFar) {
  const Space space = makeSpace();
  Surrogate surrogate(space);
  const std::vector<Point> points = space.points();
  const Point told = points[10];
  Point near = told, far = told;
  near.at[1] += near.at[1] == 0 ? 1 : -1;
  far.at[0] = far.at[0] == 0 ? 1 : 0;
  far.at[3] = far.at[3] == 0 ? 4 : 0;
  surrogate.add(told, 100, 150); // half as slow again as predicted
  surrogate.fit();
  const auto atTold = surrogate.believe(told, 100), atNear = surrogate.believe(near, 100),
             atFar = surrogate.believe(far, 100);
  EXPECT_NEAR(std::exp(atTold.logUs), 150, 1);
  EXPECT_LT(atTold.deviation, 0.05);
  EXPECT_LT(atTold.deviation, atNear.deviation);
  EXPECT_LT(atNear.deviation, atFar.deviation);
  // Without another measurement the factor counts as common to all.
  EXPECT_GT(std::exp(atFar.logUs), 130);
}

TEST(SurrogateTest, OneSlowPartitionIsNotTheOthersFault) {
  const Space space = makeSpace();
  Surrogate surrogate(space);
  const std::vector<Point> points = space.points();
  Point slow = points[0], fast = points[0], like = points[0];
  slow.at[0] = 1;
  fast.at[0] = 3;
  like.at[0] = 1;
  like.at[1] = 1;
  surrogate.add(slow, 100, 200);
  surrogate.add(fast, 100, 100);
  surrogate.fit();
  EXPECT_GT(std::exp(surrogate.believe(like, 100).logUs), 160);
}

/// What was learnt does not depend on the order, nor on when beliefs were asked for.
TEST(SurrogateTest, SamplesCountAlikeInAnyOrder) {
  const Space space = makeSpace();
  const std::vector<Point> points = space.points();
  const Point asked = points[77];
  const std::vector<std::pair<std::size_t, double>> samples{
      {3, 90}, {40, 130}, {78, 200}, {120, 110}, {9, 60}};
  Surrogate forward(space), backward(space);
  Surrogate::Memory memory;
  for (const auto &[at, us] : samples) {
    forward.add(points[at], 100, us);
    forward.fit();
    forward.believe(asked, 100, memory);
  }
  for (auto sample = samples.rbegin(); sample != samples.rend(); ++sample)
    backward.add(points[sample->first], 100, sample->second);
  backward.fit();
  const auto one = forward.believe(asked, 100, memory), other = backward.believe(asked, 100),
             anew = forward.believe(asked, 100);
  EXPECT_NEAR(one.logUs, other.logUs, 1e-9);
  EXPECT_NEAR(one.deviation, other.deviation, 1e-9);
  EXPECT_NEAR(one.logUs, anew.logUs, 1e-12);
  EXPECT_NEAR(one.deviation, anew.deviation, 1e-12);
}

TEST(SurrogateTest, WhatIsChangedOrClearedIsForgotten) {
  const Space space = makeSpace();
  const std::vector<Point> points = space.points();
  Surrogate surrogate(space);
  Surrogate::Memory memory;
  const auto before = surrogate.believe(points[5], 100, memory);
  EXPECT_NEAR(before.logUs, std::log(100), 1e-12) << "nobody knows better than the model";
  const std::size_t sample = surrogate.add(points[5], 100, 400);
  surrogate.fit();
  EXPECT_NEAR(std::exp(surrogate.believe(points[5], 100, memory).logUs), 400, 2);
  surrogate.change(sample, 100, 50);
  surrogate.fit();
  EXPECT_NEAR(std::exp(surrogate.believe(points[5], 100, memory).logUs), 50, 1);
  surrogate.clear();
  const auto after = surrogate.believe(points[5], 100, memory);
  EXPECT_EQ(after.logUs, before.logUs);
  EXPECT_EQ(after.deviation, before.deviation);
}

} // namespace
} // namespace deft::search
