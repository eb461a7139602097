#include "tuner/session/Verdict.h"

#include "runtime/config_cache/TreeClassifier.h"
#include "tests/support/Forest.h"
#include "tests/unit/tuner/session/StepTesting.h"

#include <gmock/gmock.h>

namespace deft::session {
namespace {

using test::configOf;
using test::levelTree;
using test::racerOf;

config_cache::Coordinates placeOf(const Sample &sample) {
  return config_cache::TreeClassifier().measure(sample.tree).place();
}

/// Two trees that are searched on, the second farther away by 46 tokens for 40, and one that is held out.
class VerdictTest : public testing::Test {
protected:
  VerdictTest() {
    for (const Sample &sample : samples_)
      trees_.samples.push_back(&sample);
    trees_.searched = 2;
  }
  /// As its confirmation has it, without and with the held-out tree.
  Verdict onSearched(const std::vector<double> &ratios) const {
    return judge_.onSearched(configOf(64), racerOf("finalist", ratios));
  }
  Verdict onHeldOut(const std::vector<double> &ratios, double heldOut) const {
    return judge_.onHeldOut(onSearched(ratios), racerOf("finalist", {heldOut}));
  }

  std::vector<Sample> samples_{{"near", 0, levelTree({1, 4}, {40, 9}), false},
                               {"far", 0, levelTree({1, 4}, {46, 9}), false},
                               {"held", 0, levelTree({1, 4}, {41, 9}), true}};
  TreesOfClass trees_;
  config::Config untuned_ = configOf(16);
  ClassJudge judge_{trees_, untuned_, 100, Estimator::Median};
};

TEST_F(VerdictTest, AFinalistThatIsFasterOnAllTreesIsForAll) {
  const Verdict verdict = onHeldOut({0.5, 0.8}, 0.9);
  EXPECT_FALSE(verdict.keepsUntuned) << verdict.note;
  EXPECT_TRUE(verdict.isSettled);
  EXPECT_EQ(verdict.config.chunkTokens, 64);
  EXPECT_TRUE(verdict.onlyFor.empty());
  EXPECT_NEAR(verdict.gain, 1 / std::sqrt(0.5 * 0.8), 1e-9);
  EXPECT_NEAR(verdict.heldOutGain.value(), 1 / 0.9, 1e-9);
  EXPECT_EQ(verdict.measurement.trees, 2);
  EXPECT_NEAR(verdict.measurement.untunedUs, 100, 1e-9);
}

TEST_F(VerdictTest, WithoutAFinalistTheUntunedChoiceStays) {
  const Verdict verdict = judge_.nothingFaster();
  EXPECT_TRUE(verdict.keepsUntuned);
  EXPECT_TRUE(verdict.isSettled);
  EXPECT_EQ(verdict.config.chunkTokens, 16);
  EXPECT_EQ(verdict.measurement.trees, 2);
  EXPECT_EQ(verdict.measurement.tunedUs, 100);
  EXPECT_EQ(verdict.note, "nothing measured was faster than the untuned config");
}

TEST_F(VerdictTest, WhatIsNotClearlyFasterSettlesThatTheUntunedChoiceStays) {
  const Verdict verdict = onSearched({0.995, 0.995});
  EXPECT_TRUE(verdict.keepsUntuned);
  EXPECT_TRUE(verdict.isSettled);
  EXPECT_EQ(verdict.note, "the best of the search is not clearly faster than the untuned config");
  EXPECT_EQ(verdict.measurement.tunedUs, verdict.measurement.untunedUs);
  EXPECT_EQ(verdict.gain, 1);
}

TEST_F(VerdictTest, NoiseMakesAGainUnclear) {
  Racer racer = racerOf("finalist", {0.97, 0.97});
  EXPECT_FALSE(judge_.onSearched(configOf(64), racer).keepsUntuned);
  for (std::size_t round = 0; round < racer.rounds.size(); ++round)
    for (double &own : racer.rounds[round].own)
      own += round % 2 == 0 ? 0.2 : -0.2;
  EXPECT_TRUE(judge_.onSearched(configOf(64), racer).keepsUntuned);
}

TEST_F(VerdictTest, AFinalistThatFailsLeavesItToTheNext) {
  Racer racer = racerOf("finalist", {0.5, 0.5});
  racer.isOut = true;
  const Verdict failed = judge_.onSearched(configOf(64), racer);
  EXPECT_TRUE(failed.keepsUntuned);
  EXPECT_FALSE(failed.isSettled);
  EXPECT_EQ(failed.note, "the winner failed when it was to be confirmed");
  const Verdict failedLater = judge_.onHeldOut(onSearched({0.5, 0.5}), {"finalist", {}, false});
  EXPECT_TRUE(failedLater.keepsUntuned);
  EXPECT_FALSE(failedLater.isSettled);
  EXPECT_EQ(failedLater.note, "the winner failed on trees that were held out");
}

TEST_F(VerdictTest, WhereItIsSlowerOnASearchedTreeItIsForTheOthersUpToHalfWay) {
  const Verdict verdict = onSearched({0.5, 1.3});
  EXPECT_FALSE(verdict.keepsUntuned) << verdict.note;
  EXPECT_FALSE(verdict.isSettled);
  EXPECT_THAT(verdict.trees, testing::ElementsAre(0));
  EXPECT_NEAR(verdict.gain, 2, 1e-9) << "of the tree that it is for";
  EXPECT_EQ(verdict.measurement.trees, 1);
  ASSERT_EQ(verdict.onlyFor.size(), 1U);
  EXPECT_EQ(verdict.onlyFor[0], placeOf(samples_[0]));
  EXPECT_NEAR(verdict.within,
              std::min(config_cache::kLikeness,
                       config_cache::distanceToNearest(verdict.onlyFor, placeOf(samples_[1])) / 2),
              0.001);
}

TEST_F(VerdictTest, WhereItIsSlowerNextToTheTreesThatItWouldBeForItIsNotTaken) {
  samples_[1].tree = levelTree({1, 4}, {41, 9});
  const Verdict verdict = onSearched({0.5, 1.3});
  EXPECT_TRUE(verdict.keepsUntuned);
  EXPECT_FALSE(verdict.isSettled);
  EXPECT_TRUE(verdict.onlyFor.empty());
  EXPECT_EQ(verdict.note, "the winner is slower than the untuned config on trees that were searched on");
}

TEST_F(VerdictTest, AConfigForTreesThatNobodyGaveIsNotTaken) {
  samples_[0].similar = 7;
  EXPECT_TRUE(onSearched({0.5, 1.3}).keepsUntuned);
  EXPECT_FALSE(onSearched({1.3, 0.5}).keepsUntuned) << "that tree was given";
}

TEST_F(VerdictTest, WhereItIsSlowerOnAHeldOutTreeNextToTheOthersItIsNotTaken) {
  const Verdict verdict = onHeldOut({0.5, 0.5}, 1.2);
  EXPECT_TRUE(verdict.keepsUntuned);
  EXPECT_FALSE(verdict.isSettled);
  EXPECT_NEAR(verdict.heldOutGain.value(), 1 / 1.2, 1e-9) << "it was measured, and is said";
  EXPECT_EQ(verdict.note, "the winner is slower than the untuned config on trees that were held out");
}

TEST_F(VerdictTest, WhereItIsSlowerOnAHeldOutTreeFarAwayItIsForTreesLikeThoseSearchedOn) {
  samples_[1].tree = levelTree({1, 4}, {41, 9});
  samples_[2].tree = levelTree({1, 4}, {46, 9});
  const Verdict verdict = onHeldOut({0.5, 0.5}, 1.2);
  EXPECT_FALSE(verdict.keepsUntuned) << verdict.note;
  EXPECT_FALSE(verdict.isSettled);
  EXPECT_THAT(verdict.onlyFor, testing::ElementsAre(placeOf(samples_[0]), placeOf(samples_[1])));
  EXPECT_GE(verdict.within, 0.025);
}

/// Verdicts by the finalists' names, and who was asked.
class FirstSettledTest : public testing::Test {
protected:
  static Verdict forAll(int chunk) {
    Verdict verdict;
    verdict.config = configOf(chunk);
    verdict.isSettled = true;
    return verdict;
  }
  static Verdict forSome(int chunk) {
    Verdict verdict = forAll(chunk);
    verdict.isSettled = false;
    verdict.onlyFor.resize(1);
    return verdict;
  }
  static Verdict forNone(bool isSettled, const std::string &note) {
    Verdict verdict;
    verdict.keepsUntuned = true;
    verdict.isSettled = isSettled;
    verdict.note = note;
    return verdict;
  }
  std::optional<Verdict> run(const std::vector<std::string> &finalists,
                             const std::vector<std::string> &others, int most = 100) {
    return firstSettled(
        finalists, others,
        [&](const std::string &id, int attempt) {
          EXPECT_EQ(attempt, static_cast<int>(asked_.size()));
          asked_.push_back(id);
          return verdicts_.at(id);
        },
        [&](int attempt) { return attempt < most; });
  }

  std::map<std::string, Verdict> verdicts_{{"all", forAll(1)},
                                           {"some", forSome(2)},
                                           {"some too", forSome(3)},
                                           {"loser", forNone(false, "slower")},
                                           {"no gain", forNone(true, "not faster")}};
  std::vector<std::string> asked_;
};

TEST_F(FirstSettledTest, AFinalistThatLosesGivesWayToTheNext) {
  EXPECT_EQ(run({"loser", "all", "some"}, {"some too"})->config.chunkTokens, 1);
  EXPECT_THAT(asked_, testing::ElementsAre("loser", "all"));
}

TEST_F(FirstSettledTest, AConfigForSomeIsKeptUntilThereIsOneForAll) {
  EXPECT_EQ(run({"some", "some too", "loser"}, {"all"})->config.chunkTokens, 2) << "the first for some";
  EXPECT_THAT(asked_, testing::ElementsAre("some", "some too", "loser")) << "others are not asked";
  asked_.clear();
  EXPECT_EQ(run({"some", "all"}, {})->config.chunkTokens, 1);
}

TEST_F(FirstSettledTest, WhereNothingIsGainedOthersMayBeForSome) {
  EXPECT_EQ(run({"no gain", "loser"}, {"no gain", "some"})->config.chunkTokens, 2);
  EXPECT_THAT(asked_, testing::ElementsAre("no gain", "some"))
      << "that settles it, and nobody is asked twice";
}

TEST_F(FirstSettledTest, WhatTheFinalistsCameToStaysWhereOthersAreNoBetter) {
  EXPECT_EQ(run({"no gain"}, {"loser"})->note, "not faster");
  asked_.clear();
  EXPECT_EQ(run({"loser"}, {"no gain"})->note, "slower");
}

TEST_F(FirstSettledTest, WhereTheTimeIsOverTheNextIsNotTried) {
  EXPECT_EQ(run({"loser", "all"}, {"all"}, 1)->note, "slower");
  asked_.clear();
  EXPECT_FALSE(run({"all"}, {"all"}, 0));
  EXPECT_THAT(asked_, testing::IsEmpty());
}

} // namespace
} // namespace deft::session
