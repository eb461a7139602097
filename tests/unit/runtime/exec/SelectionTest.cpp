#include "runtime/exec/Selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace deft::exec {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<std::int32_t> chosen(std::vector<float> scores, int budget, int keepFirst = 0, int keepLast = 0) {
  for (float &score : scores)
    score = worthOfScore(score);
  spec::SelectSpec select;
  select.keepFirst = keepFirst;
  select.keepLast = keepLast;
  std::vector<std::int32_t> positions(static_cast<std::size_t>(budget), 77);
  std::vector<std::uint64_t> keys;
  const int count = selectTokens(scores, select, budget, positions.data(), keys);
  for (int i = count; i < budget; ++i)
    EXPECT_EQ(positions[static_cast<std::size_t>(i)], -1);
  positions.resize(static_cast<std::size_t>(count));
  return positions;
}

using Positions = std::vector<std::int32_t>;

TEST(SelectionTest, TheBestStandByPosition) {
  EXPECT_EQ(chosen({1, 5, -3, 4, 2}, 3), (Positions{1, 3, 4}));
  EXPECT_EQ(chosen({1, 5, -3, 4, 2}, 1), Positions{1});
}

TEST(SelectionTest, OfEqualsTheFirstIsTaken) {
  EXPECT_EQ(chosen({2, 1, 2, 2, 1}, 2), (Positions{0, 2}));
  EXPECT_EQ(chosen({1, 1, 1, 1}, 3), (Positions{0, 1, 2}));
  EXPECT_EQ(chosen({-0.0f, 0.0f, -0.0f}, 2), (Positions{0, 1})); // one number
}

TEST(SelectionTest, ABudgetBeyondThePathTakesAllThatIsSeen) {
  EXPECT_EQ(chosen({3, -kInf, 1}, 8), (Positions{0, 2}));
  EXPECT_EQ(chosen({}, 8), Positions{});
  EXPECT_EQ(chosen({-kInf, -kInf}, 8, 1, 1), Positions{}); // what is hidden is not kept either
}

TEST(SelectionTest, NanStandsBehindAllNumbersAndBeforeWhatIsHidden) {
  EXPECT_EQ(chosen({kNan, 1, -kInf, -3e38f, kNan}, 2), (Positions{1, 3}));
  EXPECT_EQ(chosen({kNan, 1, -kInf, -3e38f, kNan}, 3), (Positions{0, 1, 3}));
  EXPECT_EQ(chosen({kNan, kInf}, 1), Positions{1});
}

TEST(SelectionTest, KeptTokensStandBeforeAllOthers) {
  EXPECT_EQ(chosen({-9, 5, 4, 3, -8, -7}, 4, 1, 2), (Positions{0, 1, 4, 5}));
  EXPECT_EQ(chosen({-9, 5, 4, 3, -8, kInf}, 2, 2, 0), (Positions{0, 1}));
  EXPECT_EQ(chosen({1, 2}, 8, 4, 4), (Positions{0, 1})); // a path shorter than what is kept
}

TEST(SelectionTest, AgreesWithASortForAnyScores) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
    std::vector<float> scores(static_cast<std::size_t>(below(300)));
    for (float &score : scores) // many ties, some hidden, some NaN
      score = below(20) == 0 ? -kInf : below(30) == 0 ? kNan : static_cast<float>(below(40) - 20) * 0.5f;
    const int first = below(5), last = below(5), budget = first + last + 1 + below(200);
    const auto tokens = static_cast<int>(scores.size());
    Positions order;
    for (int t = 0; t < tokens; ++t)
      if (scores[static_cast<std::size_t>(t)] != -kInf)
        order.push_back(t);
    const auto rank = [&](int t) {
      const float score = scores[static_cast<std::size_t>(t)];
      return t < first || t >= tokens - last ? 1e30 : std::isnan(score) ? -1e30 : static_cast<double>(score);
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return rank(a) > rank(b); });
    order.resize(std::min(order.size(), static_cast<std::size_t>(budget)));
    std::sort(order.begin(), order.end());
    EXPECT_EQ(chosen(scores, budget, first, last), order);
  }
}

TEST(SelectionTest, GivenListsAreTakenWithoutWhatIsNone) {
  const std::vector<std::int32_t> slots = {-1, 7, -1, 7, -1, -1, -1, -1, 3, 0, 9, 2};
  const GivenLists given{slots.data(), 3, 4};
  Selection selection;
  selection.take(given);
  EXPECT_TRUE(selection.areSlots);
  EXPECT_EQ(selection.counts, (std::vector<std::int32_t>{2, 0, 4}));
  EXPECT_EQ(selection.positions, (std::vector<std::int32_t>{7, 7, -1, -1, -1, -1, -1, -1, 3, 0, 9, 2}));
  selection.resize(1, 1, 1);
  EXPECT_FALSE(selection.areSlots);
}

TEST(SelectionTest, SlotsThatTheCacheLacksAreFound) {
  std::vector<std::int32_t> slots = {-1, 7, 0, 11};
  const GivenLists given{slots.data(), 2, 2};
  EXPECT_FALSE(findWrongSlot(given, 12));
  EXPECT_EQ(findWrongSlot(given, 11)->text(11), "has 11 for query 1, and the cache has 11 slots");
  slots[0] = -2;
  EXPECT_EQ(findWrongSlot(given, 12)->text(12), "has -2 for query 0, and the cache has 12 slots");
}

} // namespace
} // namespace deft::exec
