#include "tuner/session/Finalists.h"

#include "tests/unit/tuner/session/StepTesting.h"

#include <gmock/gmock.h>

namespace deft::session {
namespace {

using test::configOf;
using test::racerOf;
using testing::ElementsAre;
using testing::IsEmpty;

class FinalistsTest : public testing::Test {
protected:
  /// Candidates are called by their chunks here: a session calls them by their ids.
  std::string add(int chunk, double ratio, const char *origin = "guided", std::size_t phases = 1,
                  bool isOut = false) {
    const std::string id = candidates_.enter({configOf(chunk, phases), std::nullopt, origin});
    Racer racer = racerOf(id, {ratio});
    racer.isOut = isOut;
    scores_.add(racer, {ratio, 100 * ratio}, {0}, Estimator::Median);
    racers_.push_back(racer);
    return id;
  }
  std::vector<std::string> finalists(const std::string &rejected = "") const {
    return finalistsOf(scores_, candidates_, [&](const std::string &id) { return id == rejected; });
  }
  std::vector<std::string> order() const { return orderOfFinalists(racers_, candidates_, Estimator::Median); }

  Candidates candidates_;
  SearchScores scores_;
  std::vector<Racer> racers_;
};

TEST_F(FinalistsTest, TheFastestRaceOnceMore) {
  const std::string e = add(5, 0.95), a = add(1, 0.5), c = add(3, 0.7), b = add(2, 0.6), d = add(4, 0.8);
  EXPECT_THAT(finalists(), ElementsAre(a, b, c, d));
  EXPECT_THAT(finalists(/*rejected=*/b), ElementsAre(a, c, d, e));
}

TEST_F(FinalistsTest, WhatIsNoFasterThanTheUntunedChoiceIsNone) {
  add(1, 1.0);
  add(2, 1.2);
  EXPECT_THAT(finalists(), IsEmpty());
}

TEST_F(FinalistsTest, ANeighboursAndASimplerOneRaceToo) {
  for (int chunk = 1; chunk <= 4; ++chunk)
    add(chunk, 0.5 + 0.01 * chunk, "guided", 2);
  const std::string neighbour = add(5, 0.9, kNeighbourOrigin, 2), simple = add(6, 0.95);
  add(7, 0.97);
  const auto found = finalists();
  ASSERT_EQ(found.size(), 6U);
  EXPECT_EQ(found[4], neighbour);
  EXPECT_EQ(found[5], simple);
}

TEST_F(FinalistsTest, WhereFewAreLeftOneThatFellBehindMayStillBeForAllTrees) {
  const std::string best = add(1, 0.5), behind = add(2, 0.8, "guided", 1, /*isOut=*/true);
  add(3, 0.995, "guided", 1, /*isOut=*/true); // not clearly faster than the untuned choice
  EXPECT_THAT(finalists(), ElementsAre(best, behind));
}

TEST_F(FinalistsTest, AloneWhatFellBehindIsNone) {
  add(1, 0.8, "guided", 1, /*isOut=*/true);
  EXPECT_THAT(finalists(), IsEmpty());
}

TEST_F(FinalistsTest, TheyAreConfirmedInTheOrderOfTheirRace) {
  const std::string c = add(3, 0.8), a = add(1, 0.6), b = add(2, 0.7);
  add(4, 0.9);
  EXPECT_THAT(order(), ElementsAre(a, b, c)) << "no more than three";
  racers_[1].isOut = true;
  racers_[2].rounds.clear();
  EXPECT_EQ(order().front(), c);
}

TEST_F(FinalistsTest, OfThoseThatAreAsGoodANeighboursAndThenASimplerOneComesFirst) {
  const std::string best = add(1, 0.500, "guided", 2), neighbour = add(2, 0.507, kNeighbourOrigin, 2);
  EXPECT_THAT(order(), ElementsAre(neighbour, best));
  const std::string simple = add(3, 0.504);
  EXPECT_THAT(order(), ElementsAre(simple, neighbour, best));
}

TEST_F(FinalistsTest, WhatIsClearlyTheFastestOnOneTreeMayBeForSome) {
  SearchScores scores;
  scores.add(racerOf("first", {0.7, 1.5}), {1.02, 102}, {0, 1}, Estimator::Median);
  scores.add(racerOf("second", {1.5, 0.6}), {0.95, 95}, {0, 1}, Estimator::Median);
  EXPECT_THAT(bestOfSome(scores), ElementsAre("second", "first"));
  SearchScores hardly;
  hardly.add(racerOf("hardly", {0.985, 1.5}), {1.2, 120}, {0, 1}, Estimator::Median);
  EXPECT_THAT(bestOfSome(hardly), IsEmpty());
}

} // namespace
} // namespace deft::session
