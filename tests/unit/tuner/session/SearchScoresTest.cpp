#include "tuner/session/SearchScores.h"

#include "tests/unit/tuner/session/StepTesting.h"

namespace deft::session {
namespace {

using test::racerOf;

SearchScores scoresOf(const std::vector<Racer> &racers, const std::vector<std::size_t> &givenTrees) {
  SearchScores scores;
  for (const Racer &racer : racers)
    scores.add(racer, {std::exp(racer.score(Estimator::Median)), racer.ownUs(Estimator::Median)}, givenTrees,
               Estimator::Median);
  return scores;
}

TEST(SearchScoresTest, WhoLeftTheRaceIsKnownButNotRanked) {
  Racer dropped = racerOf("dropped", {0.5});
  dropped.isOut = true;
  const SearchScores scores = scoresOf({racerOf("slow", {1.5}), dropped, racerOf("fast", {0.8})}, {0});
  EXPECT_EQ(scores.count(), 3);
  ASSERT_EQ(scores.ranking().size(), 2U);
  EXPECT_EQ(scores.ranking()[0].second, "fast");
  EXPECT_EQ(scores.ranking()[1].second, "slow");
  EXPECT_EQ(scores.ranked().front().second, "dropped");
  EXPECT_NEAR(scores.leastRatio(), 0.8, 1e-9);
  EXPECT_EQ(scores.bestOfTree().at(0).second, "fast");
}

TEST(SearchScoresTest, TheUntunedChoiceIsTheBestUntilSomethingIsFaster) {
  EXPECT_EQ(SearchScores().leastRatio(), 1);
  EXPECT_EQ(scoresOf({racerOf("slow", {1.5})}, {0}).leastRatio(), 1);
}

TEST(SearchScoresTest, EachGivenTreeHasItsBestAndTreesLikeThemHaveNone) {
  const SearchScores scores =
      scoresOf({racerOf("first", {0.7, 1.2, 0.1}), racerOf("second", {0.9, 0.8, 0.2})}, {0, 1});
  ASSERT_EQ(scores.bestOfTree().size(), 2U);
  EXPECT_EQ(scores.bestOfTree().at(0).second, "first");
  EXPECT_EQ(scores.bestOfTree().at(1).second, "second");
  EXPECT_NEAR(scores.bestOfTree().at(1).first, 0.8, 1e-9);
}

} // namespace
} // namespace deft::session
