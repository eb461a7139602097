/// What masks can show, by their bounds and by evaluating them.

#include "runtime/plan/Reach.h"

#include "runtime/exec/ParamRanges.h"
#include "runtime/exec/Params.h"
#include "runtime/reference/Evaluate.h"
#include "tests/support/Masks.h"
#include "tests/support/VariantBuilder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <random>

namespace deft::plan {
namespace {

using reference::Evaluator;
using reference::Precision;
using reference::Site;

/// Values for all parameters: mostly small, sometimes at the ends of i32.
exec::Inputs someParams(const spec::Variant &variant, std::mt19937 &random) {
  exec::Inputs inputs;
  for (const spec::Param &param : variant.params) {
    exec::ParamValue value;
    for (int i = 0; i < exec::paramLength(variant, param); ++i) {
      const int ends[] = {INT_MIN, INT_MAX, INT_MAX - 3, 1 << 30};
      const int number = random() % 12 == 0 ? ends[random() % 4] : static_cast<int>(random() % 40) - 8;
      if (param.type == spec::ScalarType::I32)
        value.i32.push_back(number);
      else
        value.f32.push_back(static_cast<float>(number) / 4);
    }
    inputs.params.push_back(std::move(value));
  }
  return inputs;
}

/// Whether the mask shows any head the token, for some depth and index of the query.
bool shows(const spec::Variant &variant, Evaluator &evaluator, int qPos, int kvPos, std::mt19937 &random) {
  for (int head = 0; head < variant.queryHeads; ++head)
    for (int turn = 0; turn < 3; ++turn) {
      const Site site{0,
                      qPos,
                      kvPos,
                      head,
                      head / variant.ratio(),
                      static_cast<int>(random() % 5),
                      static_cast<int>(random() % 7)};
      if (evaluator.boolean(*variant.mask, site))
        return true;
    }
  return false;
}

/// The last position of its path that a query's bound allows, of as many as are tried.
int lastOf(const spec::Variant &variant, int qPos) {
  return variant.bound == spec::MaskBound::Path ? qPos + 25 : qPos;
}

bool isIn(const std::vector<Positions> &stretches, int position) {
  return std::any_of(stretches.begin(), stretches.end(), [&](const Positions &stretch) {
    return stretch.begin <= position && position < stretch.end;
  });
}

TEST(ReachTest, NothingThatAMaskShowsIsOutside) {
  constexpr int kMost = 40;
  int bounded = 0;
  std::vector<Positions> own, all;
  for (unsigned seed = 0; seed < 12000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const spec::Variant variant = test::randomMask(seed);
    std::mt19937 random(seed);
    const exec::Inputs inputs = someParams(variant, random);
    const Reach reach = exec::reachOf(variant, inputs.params);
    if (reach.isAll())
      continue;
    ++bounded;
    Evaluator evaluator(variant, inputs, Precision::Exact);
    reach.find(-1, kMost, all);
    for (int qPos = -1; qPos <= kMost; qPos += 1 + static_cast<int>(seed % 3)) {
      reach.find(qPos, qPos, own);
      for (int kvPos = 0; kvPos <= lastOf(variant, qPos); ++kvPos) {
        ASSERT_EQ(isIn(own, kvPos), reach.firstFrom(qPos, kvPos) == kvPos);
        if (!shows(variant, evaluator, qPos, kvPos, random))
          continue;
        ASSERT_TRUE(isIn(own, kvPos)) << "q_pos " << qPos << ", kv_pos " << kvPos;
        ASSERT_TRUE(isIn(all, kvPos)) << "q_pos " << qPos << ", kv_pos " << kvPos;
        ASSERT_LE(reach.lowest(qPos), kvPos);
        ASSERT_LT(kvPos, reach.endOfSeen(qPos)) << "q_pos " << qPos;
      }
    }
  }
  EXPECT_GT(bounded, 600); // else the test would say nothing
}

// Of queries whose q_pos is known but for so much, all that any of them may see.
TEST(ReachTest, WidenedShowsWhatQueriesNearByAreShown) {
  constexpr int kMost = 30;
  int checked = 0;
  std::vector<Positions> own, all;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const spec::Variant variant = test::randomMask(seed);
    std::mt19937 random(seed);
    const Reach reach = exec::reachOf(variant, someParams(variant, random).params);
    if (reach.isAll())
      continue;
    const int below = static_cast<int>(random() % 8), above = static_cast<int>(random() % 8);
    const Reach wide = reach.widened(below, above);
    for (int qPos = 0; qPos < kMost; ++qPos) {
      wide.find(qPos, qPos, all);
      for (int other = std::max(qPos - below, 0); other <= qPos + above; ++other) {
        reach.find(other, other, own);
        const int last = reach.seesPath() ? kMost + 9 : std::min(qPos, other);
        for (int position = 0; position <= last; ++position, ++checked)
          ASSERT_TRUE(!isIn(own, position) || isIn(all, position))
              << qPos << " for " << other << " at " << position;
      }
    }
  }
  EXPECT_GT(checked, 100'000);
}

/// Planners search for the last query that sees a token.
TEST(ReachTest, WindowsNeverGoBack) {
  int rising = 0;
  for (unsigned seed = 0; seed < 14000; ++seed) {
    const spec::Variant variant = test::randomMask(seed);
    std::mt19937 random(seed);
    const Reach reach = exec::reachOf(variant, someParams(variant, random).params);
    for (int qPos = -1; qPos < 40; ++qPos)
      ASSERT_LE(reach.lowest(qPos), reach.lowest(qPos + 1)) << "seed " << seed;
    if (reach.isAll() || reach.hasRisingEnd())
      continue;
    rising += reach.hasRisingStart() ? 1 : 0;
    const auto sees = [&](int qPos, int begin, int end) { return reach.firstFrom(qPos, begin) < end; };
    for (int begin = 0; begin < 30; ++begin)
      for (int end = begin + 1; end < 34; end += 3)
        for (int qPos = end - 1; qPos < 40; ++qPos)
          ASSERT_LE(sees(qPos + 1, begin, end), sees(qPos, begin, end)) << "seed " << seed;
  }
  EXPECT_GT(rising, 100);
}

TEST(ReachTest, MasksOfModelsAreKnownToTheToken) {
  std::mt19937 random(1);
  for (const auto &[name, variant] : test::modelMasks()) {
    SCOPED_TRACE(name);
    exec::Inputs inputs;
    for (const spec::Param &param : variant.params)
      inputs.params.push_back({{}, {param.defaultValue ? static_cast<int>(*param.defaultValue) : 9}});
    if (!inputs.params.empty())
      inputs.params[0].i32.resize(static_cast<std::size_t>(exec::paramLength(variant, variant.params[0])), 9);
    const Reach reach = exec::reachOf(variant, inputs.params);
    EXPECT_EQ(reach.isAll(), name == "switched off");
    Evaluator evaluator(variant, inputs, Precision::Exact);
    for (int qPos = 0; qPos < 200; ++qPos)
      for (int kvPos = 0; kvPos <= lastOf(variant, qPos); ++kvPos)
        ASSERT_EQ(reach.firstFrom(qPos, kvPos) == kvPos, shows(variant, evaluator, qPos, kvPos, random))
            << "q_pos " << qPos << ", kv_pos " << kvPos;
  }
}

/// What one of several queries sees first, whatever the mask's gaps.
TEST(ReachTest, OfSeveralQueriesTheOneCountsThatSeesFarthestUp) {
  int decidedByLater = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const spec::Variant variant = seed % 2 == 0 ? test::randomBands(seed) : test::randomMask(seed);
    std::mt19937 random(seed);
    const Reach reach = exec::reachOf(variant, someParams(variant, random).params);
    std::vector<int> qPos(1 + random() % 5);
    for (int &own : qPos)
      own = static_cast<int>(random() % 60) - 1;
    const int growth = static_cast<int>(random() % 9);
    for (int position = 0; position < 60; ++position) {
      int first = Reach::kNowhere;
      for (const int own : qPos)
        first = std::min(first, reach.firstFrom(own + growth, position));
      ASSERT_EQ(reach.firstFrom(qPos, growth, position), first) << "position " << position;
      const int least = *std::min_element(qPos.begin(), qPos.end());
      decidedByLater += first < reach.firstFrom(least + growth, position) ? 1 : 0;
    }
  }
  EXPECT_GT(decidedByLater, 1000);
  EXPECT_EQ(Reach().firstFrom(std::vector{3, 8}, 0, 8), 8);
  EXPECT_EQ(Reach().firstFrom(std::vector{3, 8}, 1, 10), Reach::kNowhere);
  EXPECT_EQ(Reach().firstFrom(std::vector<int>{}, 0, 0), Reach::kNowhere);
}

/// A mask `kv_pos > q_pos - w` with the parameter w.
spec::Variant windowOfParam(spec::Param::Shape shape = spec::Param::Shape::Scalar) {
  test::VariantBuilder builder;
  const int w = builder.param("w", spec::ScalarType::I32, shape);
  const auto start = builder.op(spec::ExprOp::Sub, spec::ScalarType::I32,
                                {builder.read(spec::Builtin::QPos), builder.readParam(w)});
  builder.variant.mask =
      builder.op(spec::ExprOp::Gt, spec::ScalarType::Bool, {builder.read(spec::Builtin::KvPos), start});
  return builder.variant;
}

/// A query that sees more stretches than one that comes before it has lost what was between them.
TEST(ReachTest, GapsThatOpenAreKnown) {
  int opened = 0;
  std::vector<Positions> before, now;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    const Reach reach = Reach::ofDefaults(test::randomBands(seed));
    if (reach.hasRisingEnd())
      continue;
    for (int qPos = 0; qPos < 120; ++qPos) {
      reach.find(qPos, qPos, before);
      reach.find(qPos + 1, qPos + 1, now);
      bool isOpened = false;
      for (std::size_t i = 0; i + 1 < now.size(); ++i)
        isOpened |= std::any_of(before.begin(), before.end(), [&](const Positions &stretch) {
          return stretch.begin < now[i].end && now[i].end < std::min(stretch.end, qPos + 1);
        });
      ASSERT_TRUE(!isOpened || reach.opensGap(qPos, qPos + 1)) << "seed " << seed << ", q_pos " << qPos;
      opened += isOpened ? 1 : 0;
    }
  }
  EXPECT_GT(opened, 100);
  const Reach window = exec::reachOf(windowOfParam(), {{{}, {10}}});
  EXPECT_FALSE(window.opensGap(0, 1000));
}

TEST(ReachTest, AParameterWithoutAValueBoundsNothing) {
  const spec::Variant variant = windowOfParam();
  EXPECT_TRUE(Reach::ofDefaults(variant).isAll());
  const Reach reach = exec::reachOf(variant, {{{}, {10}}});
  EXPECT_FALSE(reach.isAll());
  EXPECT_EQ(reach.firstFrom(100, 0), 91);
  EXPECT_NE(reach, exec::reachOf(variant, {{{}, {11}}}));
}

TEST(ReachTest, OfSeveralHeadsTheWidestWindowCounts) {
  const spec::Variant variant = windowOfParam(spec::Param::Shape::PerQueryHead);
  EXPECT_EQ(exec::reachOf(variant, {{{}, {10, 30}}}).firstFrom(100, 0), 71);
}

/// q_pos - w leaves i32 for early queries and wraps around: they see nothing, where the sum says everything.
TEST(ReachTest, WhatWrapsAroundBoundsNothing) {
  EXPECT_TRUE(exec::reachOf(windowOfParam(), {{{}, {INT_MIN}}}).isAll());
  EXPECT_FALSE(exec::reachOf(windowOfParam(), {{{}, {-(1 << 30)}}}).isAll());
}

TEST(ReachTest, NothingAtAllIsKnown) {
  test::VariantBuilder builder;
  builder.variant.mask = builder.constant(0, spec::ScalarType::Bool);
  const Reach reach = Reach::ofDefaults(builder.variant);
  EXPECT_FALSE(reach.isAll());
  EXPECT_EQ(reach.firstFrom(100, 0), Reach::kNowhere);
  std::vector<Positions> stretches;
  reach.find(0, 100, stretches);
  EXPECT_TRUE(stretches.empty());
}

/// Shared operands that double at each step are not followed twice, nor are choices without end.
TEST(ReachTest, ExpressionsThatDoubleTakeNoTime) {
  test::VariantBuilder builder;
  auto sum = builder.read(spec::Builtin::KvPos), choice = builder.read(spec::Builtin::QPos);
  for (int i = 0; i < 200; ++i) {
    sum = builder.op(spec::ExprOp::Add, spec::ScalarType::I32, {sum, sum});
    choice = builder.op(spec::ExprOp::Max, spec::ScalarType::I32, {choice, choice});
  }
  builder.variant.mask = builder.op(spec::ExprOp::Lt, spec::ScalarType::Bool, {choice, sum});
  EXPECT_TRUE(Reach::ofDefaults(builder.variant).isAll());
}

} // namespace
} // namespace deft::plan
