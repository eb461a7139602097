/// Bounds as sums, and where they must say nothing. That no mask shows a token outside is ReachTest's.

#include "compiler/spec/VisibleBounds.h"

#include "tests/unit/compiler/spec/SpecTesting.h"

#include <pthread.h>

#include <algorithm>
#include <functional>

namespace deft::spec::testing {
namespace {

VisibleBounds boundsOf(const std::string &items) { return visibleBounds(compile(attention(items)).only()); }

/// The value of a sum whose parameters all have one value, without wrapping around.
std::int64_t valueOf(const PositionSum &sum, std::int64_t qPos, std::int64_t param) {
  const auto ofParams = [&](const ParamSum &one) {
    std::int64_t value = one.constant;
    for (const ParamSum::Term &term : one.terms)
      value += term.times * param;
    return value;
  };
  std::int64_t value = sum.qPos * qPos + ofParams(sum.rest);
  for (const PositionSum::Rounded &part : sum.rounded) {
    const std::int64_t step = ofParams(part.step);
    value += part.times * ((qPos + ofParams(part.rest)) / step * step);
  }
  return value;
}

bool isInside(const VisibleBounds &bounds, int qPos, int kvPos, int param) {
  return std::any_of(bounds.intervals.begin(), bounds.intervals.end(), [&](const auto &interval) {
    const auto all = [](const auto &list, auto holds) {
      return std::all_of(list.begin(), list.end(), holds);
    };
    return all(interval.from, [&](const auto &b) { return kvPos >= valueOf(b.at, qPos, param); }) &&
           all(interval.until, [&](const auto &b) { return kvPos < valueOf(b.at, qPos, param); }) &&
           all(interval.conditions, [&](const auto &b) { return valueOf(b.at, qPos, param) >= 0; });
  });
}

TEST(VisibleBoundsTest, ArraysOverTokensAndQueriesBoundNothing) {
  for (const std::string mask :
       {"kv_pos > doc[token]", "kv_pos > q_pos - own[query]", "doc[token] == own[query]"}) {
    const VisibleBounds bounds =
        boundsOf("param doc: i32[tokens]; param own: i32[queries]; mask = " + mask + ";");
    ASSERT_EQ(bounds.intervals.size(), 1u) << mask;
    const auto &only = bounds.intervals[0];
    EXPECT_TRUE(only.from.empty() && only.until.empty() && only.conditions.empty()) << mask;
  }
}

TEST(VisibleBoundsTest, BoundsAreExactWhereAMaskIsComparisonsOfPositions) {
  struct Case {
    const char *items;
    std::function<bool(int q, int kv, int p)> shows;
  };
  const Case cases[] = {
      {"mask = kv_pos > q_pos - 20;", [](int q, int kv, int) { return kv > q - 20; }},
      {"mask = q_pos - kv_pos <= 20;", [](int q, int kv, int) { return q - kv <= 20; }},
      {"mask = !(20 < q_pos - kv_pos);", [](int q, int kv, int) { return q - kv <= 20; }},
      {"param w: i32; mask = kv_pos + w >= q_pos;", [](int q, int kv, int p) { return kv + p >= q; }},
      {"mask = kv_pos < 4 || kv_pos > q_pos - 8;", [](int q, int kv, int) { return kv < 4 || kv > q - 8; }},
      {"mask = kv_pos >= 3 && kv_pos < q_pos - 2;", [](int q, int kv, int) { return kv >= 3 && kv < q - 2; }},
      {"mask = abs(q_pos - kv_pos) <= 5;", [](int q, int kv, int) { return std::abs(q - kv) <= 5; }},
      {"mask = kv_pos == q_pos - 1;", [](int q, int kv, int) { return kv == q - 1; }},
      {"mask = kv_pos >= max(q_pos - 9, 6);", [](int q, int kv, int) { return kv >= std::max(q - 9, 6); }},
      {"mask = kv_pos >= min(q_pos - 9, 6);", [](int q, int kv, int) { return kv >= std::min(q - 9, 6); }},
      {"mask = kv_pos >= q_pos - q_pos % 8;", [](int q, int kv, int) { return kv >= q / 8 * 8; }},
      {"param w: i32; mask = w > 0 ? kv_pos > q_pos - w : kv_pos < 3;",
       [](int q, int kv, int p) { return p > 0 ? kv > q - p : kv < 3; }},
  };
  for (const Case &one : cases) {
    SCOPED_TRACE(one.items);
    const VisibleBounds bounds = boundsOf(one.items);
    for (const int param : {-3, 0, 1, 7})
      for (int q = 0; q < 40; ++q)
        for (int kv = 0; kv <= q; ++kv)
          ASSERT_EQ(isInside(bounds, q, kv, param), one.shows(q, kv, param))
              << "q " << q << ", kv " << kv << ", parameter " << param;
  }
}

TEST(VisibleBoundsTest, WhatIsNoSumOfPositionsSaysNothing) {
  const auto isEverything = [](const std::string &items) {
    const VisibleBounds bounds = boundsOf(items);
    return bounds.intervals.size() == 1 && bounds.intervals[0].isAll();
  };
  EXPECT_TRUE(isEverything(""));
  EXPECT_TRUE(isEverything("mask = head > 3;"));
  EXPECT_TRUE(isEverything("mask = kv_pos != q_pos;"));
  EXPECT_TRUE(isEverything("mask = 2 * kv_pos > q_pos;"));
  EXPECT_TRUE(isEverything("mask = kv_pos > depth;"));
  EXPECT_TRUE(isEverything("mask = kv_pos > -q_pos + 40;")) << "falls as queries come later";
  EXPECT_TRUE(isEverything("mask = kv_pos > 3 || head == 0;"));
  EXPECT_FALSE(isEverything("mask = kv_pos > 3 && head == 0;")) << "one of two conditions bounds both";
}

/// Planners walk intervals for every query: of nine, all that is said is that they are too many.
TEST(VisibleBoundsTest, ManyIntervalsAreOneThatHoldsThemAll) {
  std::string mask = "kv_pos == 0";
  for (int i = 1; i < 8; ++i)
    mask += " || kv_pos == " + std::to_string(10 * i);
  EXPECT_EQ(boundsOf("mask = " + mask + ";").intervals.size(), 8U);
  const VisibleBounds nine = boundsOf("mask = " + mask + " || kv_pos == 80;");
  ASSERT_EQ(nine.intervals.size(), 1U);
  EXPECT_TRUE(nine.intervals[0].isAll());
}

/// Lets may stand on each other some thousand times (rule L6), and who compiles a spec may be a thread of a
/// small stack.
TEST(VisibleBoundsTest, WhatStandsOnALongWayDownSaysNothing) {
  std::string sums = "let l0 = kv_pos;", choices = "let l0 = kv_pos > 0;";
  for (int i = 1; i < 1300; ++i) {
    const std::string before = std::to_string(i - 1), now = std::to_string(i);
    sums += "let l" + now + " = l" + before + " + 1;";
    choices += "let l" + now + " = l" + before + " || q_pos == " + now + ";";
  }
  for (int i = 1300; i < 4000; ++i)
    sums += "let l" + std::to_string(i) + " = l" + std::to_string(i - 1) + " + 1;";
  struct Work {
    Variant variant;
    VisibleBounds bounds = {};
  };
  for (const std::string &items : {sums + "mask = l3999 > 0;", choices + "mask = l1299;"}) {
    Work work{compile(attention(items)).only()};
    pthread_attr_t small;
    ASSERT_EQ(pthread_attr_init(&small), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&small, 1 << 20), 0);
    pthread_t thread;
    const auto derive = [](void *at) -> void * {
      auto &own = *static_cast<Work *>(at);
      own.bounds = visibleBounds(own.variant);
      return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, &small, derive, &work), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
    pthread_attr_destroy(&small);
    EXPECT_TRUE(std::any_of(work.bounds.intervals.begin(), work.bounds.intervals.end(),
                            [](const auto &interval) { return interval.isAll(); }));
  }
}

TEST(VisibleBoundsTest, AMaskThatHidesAllHasNoIntervals) {
  EXPECT_TRUE(boundsOf("mask = false; // allow W1\n").intervals.empty());
}

/// What may leave i32 on the way is there to be checked, since the language's numbers wrap around.
TEST(VisibleBoundsTest, ABoundNamesAllThatMustFit) {
  const VisibleBounds bounds = boundsOf("param w: i32; mask = kv_pos >= q_pos + 3 * w - 5;");
  ASSERT_EQ(bounds.intervals.size(), 1U);
  ASSERT_EQ(bounds.intervals[0].from.size(), 1U);
  const VisibleBounds::Bound &bound = bounds.intervals[0].from[0];
  EXPECT_EQ(bound.at.qPos, 1);
  EXPECT_EQ(bound.at.rest, (ParamSum{-5, {{0, 3}}}));
  std::vector<ParamSum> rests;
  for (const PositionSum &sum : bound.fits)
    rests.push_back(sum.rest);
  for (const ParamSum &rest : {ParamSum{0, {{0, 3}}}, ParamSum{-5, {{0, 3}}}})
    EXPECT_NE(std::find(rests.begin(), rests.end(), rest), rests.end());
}

TEST(VisibleBoundsTest, SumsOfParametersDropWhatIsZero) {
  const ParamSum a{4, {{0, 2}, {2, -1}}}, b{-1, {{1, 5}, {2, 1}}};
  EXPECT_EQ(a + b, (ParamSum{3, {{0, 2}, {1, 5}}}));
  EXPECT_EQ(a * -3, (ParamSum{-12, {{0, -6}, {2, 3}}}));
  EXPECT_TRUE((a * 0).isConstant());
  EXPECT_EQ(a + a * -1, ParamSum());
}

} // namespace
} // namespace deft::spec::testing
