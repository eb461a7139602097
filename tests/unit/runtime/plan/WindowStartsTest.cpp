/// Runs under a window of 20 positions, by hand: what they lose as queries see what leaves have gained.

#include "runtime/plan/WindowStarts.h"

#include "runtime/plan/Deal.h"
#include "tests/unit/runtime/plan/PlanTesting.h"

namespace deft::plan {
namespace {

using testing::ElementsAre;

constexpr int kWindow = 20, kGrowth = 16;

/// A run [location, location + tokens) of the cache, whose first token is at `position`, for the queries
/// [queryBegin, queryEnd) of its item.
struct Stretch {
  int location, position, tokens, queryBegin, queryEnd;
};

struct Windowed {
  Plan plan;

  explicit Windowed(std::vector<int> queryPos) {
    spec::VisibleBounds::Bound window; // kv_pos >= q_pos - 19
    window.at.qPos = 1;
    window.at.rest.constant = 1 - kWindow;
    plan.reach = Reach::of({{{.from = {window}, .until = {}, .conditions = {}}}}, {});
    plan.trimStep = 4;
    plan.queryPos = std::move(queryPos);
  }
  void addItem(int queryBegin, int queryCount, const std::vector<Stretch> &stretches) {
    abi::Item item{};
    item.queryBegin = queryBegin;
    item.queryCount = queryCount;
    item.runBegin = static_cast<int>(plan.runs.size());
    item.runCount = static_cast<int>(stretches.size());
    for (const Stretch &one : stretches) {
      plan.runs.own().push_back(
          {item.tokens, one.tokens, one.location, one.position, 0, one.queryBegin, one.queryEnd, 0, 0});
      item.tokens += one.tokens;
    }
    plan.items.push_back(item);
  }
  void find(int growth = kGrowth) { findWindowStarts(growth, plan); }
  /// Queries gain so many tokens, and windows follow. False: it is time for a new plan.
  bool grow(int tokens) {
    for (int &qPos : plan.queryPos)
      qPos += tokens;
    std::vector<int> moved(plan.windowStarts.size(), 0);
    if (!findWindowMoves(plan, moved))
      return false;
    most = moveWindowStarts(plan, moved);
    return true;
  }
  std::vector<int> begins() const { ///< in the cache
    std::vector<int> begins;
    for (const abi::Run &run : plan.runs)
      begins.push_back(run.location);
    return begins;
  }
  int most = 0;
};

TEST(WindowStartsTest, OnlyRunsThatCanLoseTokensAreFound) {
  Windowed one({39, 45});
  one.addItem(0, 2, {{120, 20, 15, 0, 2}, {200, 35, 5, 0, 1}, {300, 45, 1, 1, 2}});
  one.find(0);
  EXPECT_TRUE(one.plan.windowHeads.empty()) << "the first query sees all of the run";
  one.find(1);
  ASSERT_EQ(one.plan.windowHeads.size(), 1U);
  EXPECT_EQ(one.plan.windowHeads[0].run, 0);
  EXPECT_EQ(one.plan.windowStarts[0].location, 120);
  one.find(kGrowth + 1);
  EXPECT_EQ(one.plan.windowHeads.size(), 2U) << "37 is where the first query then begins to see";
  one.plan.reach = Reach();
  one.find();
  EXPECT_TRUE(one.plan.windowHeads.empty() && one.plan.windowStarts.empty());
}

TEST(WindowStartsTest, RunsLoseWhatNoneOfTheirReadersSeesInWholeSteps) {
  Windowed one({39, 45});
  one.addItem(0, 2, {{120, 20, 15, 0, 2}, {300, 45, 1, 1, 2}});
  one.plan.readTokens = 16;
  one.find();
  ASSERT_TRUE(one.grow(3)); // the first query sees from 23 on
  EXPECT_THAT(one.begins(), ElementsAre(120, 300));
  EXPECT_EQ(one.most, 0);
  ASSERT_TRUE(one.grow(3)); // from 26 on
  EXPECT_THAT(one.begins(), ElementsAre(124, 300));
  EXPECT_EQ(one.most, 4);
  EXPECT_EQ(one.plan.runs[0].position, 24);
  EXPECT_EQ(one.plan.runs[0].tokens, 11);
  EXPECT_EQ(one.plan.runs[1].begin, 11);
  EXPECT_EQ(one.plan.items[0].tokens, 12);
  EXPECT_EQ(one.plan.readTokens, 12);
  ASSERT_TRUE(one.grow(8)); // from 34 on, of which 32 is a step
  EXPECT_THAT(one.begins(), ElementsAre(132, 300));
  EXPECT_FALSE(one.grow(1)) << "nothing of the run would be left";
}

/// Two items read the same prompt, and one of them begins later: its tokens are counted once.
TEST(WindowStartsTest, TokensOfSeveralWindowsAreLostOnce) {
  Windowed one({39, 47});
  one.addItem(0, 1, {{120, 20, 20, 0, 1}});
  one.addItem(1, 1, {{128, 28, 12, 0, 1}});
  one.plan.readTokens = 20;
  one.find();
  ASSERT_EQ(one.plan.windowStarts.size(), 2U);
  ASSERT_TRUE(one.grow(8));
  EXPECT_THAT(one.begins(), ElementsAre(128, 136));
  EXPECT_EQ(one.plan.readTokens, 12);
  // A run that keeps its beginning reads what others lose.
  Windowed kept({39, 19, 39});
  kept.addItem(0, 1, {{120, 20, 20, 0, 1}});
  kept.addItem(1, 2, {{100, 0, 40, 0, 2}});
  kept.plan.readTokens = 40;
  kept.find(0);
  kept.plan.queryPos[0] += 1;
  kept.find(0);
  ASSERT_EQ(kept.plan.windowStarts.size(), 1U);
  EXPECT_TRUE(kept.plan.windowStarts[0].isInside);
  kept.plan.queryPos[0] += 7;
  std::vector<int> moved{0};
  ASSERT_TRUE(findWindowMoves(kept.plan, moved));
  EXPECT_EQ(moveWindowStarts(kept.plan, moved), 8);
  EXPECT_EQ(kept.plan.readTokens, 40);
}

/// Nodes that share places stand at other positions each, and one may grow without the other.
TEST(WindowStartsTest, WindowsOfNodesThatSharePlacesMoveByThemselves) {
  Windowed one({39, 139});
  one.addItem(0, 1, {{120, 20, 20, 0, 1}});
  one.addItem(1, 1, {{120, 120, 20, 0, 1}});
  one.plan.readTokens = 40;
  one.find();
  ASSERT_EQ(one.plan.windowStarts.size(), 2U);
  one.plan.queryPos[0] += 4;
  ASSERT_TRUE(one.grow(0));
  EXPECT_THAT(one.begins(), ElementsAre(124, 120)) << "the second query still sees its first token";
  EXPECT_EQ(one.plan.readTokens, 36);
}

/// Of kv_pos == q_pos - 15 || kv_pos > q_pos - 3 the reader with the least q_pos sees the end of the run, and
/// another one its beginning.
TEST(WindowStartsTest, UnderAMaskWithAGapAnyReaderMayKeepTheBeginning) {
  const auto at = [](int rest) {
    spec::VisibleBounds::Bound bound; // q_pos + rest
    bound.at.qPos = 1;
    bound.at.rest.constant = rest;
    return bound;
  };
  Windowed one({15, 11, 26});
  one.plan.trimStep = 1;
  one.plan.reach = Reach::of({{{.from = {at(-15)}, .until = {at(-14)}, .conditions = {}},
                               {.from = {at(-2)}, .until = {}, .conditions = {}}}},
                             {});
  one.addItem(0, 3, {{0, 0, 12, 0, 3}});
  one.find();
  ASSERT_EQ(one.plan.windowStarts.size(), 1U);
  ASSERT_TRUE(one.grow(0));
  EXPECT_THAT(one.begins(), ElementsAre(0)) << "the first query sees token 0";
  one.plan.queryPos[0] += 4; // and then token 4, and the second one from 9 on
  ASSERT_TRUE(one.grow(0));
  EXPECT_THAT(one.begins(), ElementsAre(4));
  one.plan.queryPos[0] += 10; // nothing of the run
  ASSERT_TRUE(one.grow(0));
  EXPECT_THAT(one.begins(), ElementsAre(9));
  EXPECT_TRUE(one.grow(2)) << "the second one sees from 11 on";
  EXPECT_FALSE(one.grow(1)) << "and then none of them sees a token of the run";
}

TEST(WindowStartsTest, DealtTilesAreCountedAnew) {
  Windowed one({56, 40, 40, 40});
  one.addItem(
      0, 4,
      {{120, 20, 20, 0, 4}, {200, 40, 17, 0, 1}, {300, 40, 1, 1, 2}, {400, 40, 1, 2, 3}, {500, 40, 1, 3, 4}});
  for (int warp = 0; warp < kDealtWarps; ++warp)
    one.plan.runs.own()[static_cast<std::size_t>(warp)].dealtBegin = warp + 1;
  one.plan.items[0].dealtTiles = 2;
  one.plan.items[0].commonTokens = 20;
  one.find();
  ASSERT_TRUE(one.grow(4));
  EXPECT_EQ(one.plan.items[0].commonTokens, 16);
  EXPECT_EQ(one.plan.items[0].dealtTiles, 2);
  EXPECT_TRUE(isDealtRight(one.plan.items[0], {one.plan.runs.data(), one.plan.runs.size()}));
}

/// Chunks of an invariant plan stay whole as long as each shows all of its readers something.
TEST(WindowStartsTest, ChunksOfAnInvariantPlanAreKeptOrPlannedAnew) {
  Windowed one({39, 45});
  one.plan.strictChunk = 16;
  one.addItem(0, 2, {{120, 20, 16, 0, 2}});
  one.find();
  EXPECT_TRUE(one.grow(9)); // the second query sees from 35 on: one token
  EXPECT_THAT(one.begins(), ElementsAre(120));
  EXPECT_FALSE(one.grow(1));
}

} // namespace
} // namespace deft::plan
