#include "tests/unit/tuner/session/TuneTesting.h"

#include "runtime/config_cache/TreeClassifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

/// For which trees of a class a winner is: all, those like some, or none.
namespace deft::session {
namespace {

using test::landscape;

class ForSomeTest : public TuneTest {
protected:
  /// Of the class with two trees, where all takes 100 us on both but `query`.
  ClassReport oneWithTwoTrees(double queryUs, double queryUsOnTheSecond) {
    input.samples[1].tree = test::levelTree({1, 4}, {46, 9});
    behaviour.time = [=](const plan::Plan &plan) {
      const bool isSecond = plan.readTokens == 46 + 4 * 9;
      return plan.partition != spec::Partition::Query ? 100 : isSecond ? queryUsOnTheSecond : queryUs;
    };
    const auto report = run();
    EXPECT_TRUE(report.ok()) << report.error().message;
    for (const ClassReport &one : report->classes)
      if (one.trees == 2)
        return one;
    ADD_FAILURE() << "no class has two trees";
    return {};
  }
};

/// `query` is the only fast one, but slow on trees of so many tokens: faster in the mean of one such and
/// another.
std::function<double(const plan::Plan &)> fastButOn(int tokens) {
  return [tokens](const plan::Plan &plan) {
    if (plan.partition != spec::Partition::Query)
      return 100.0;
    return plan.readTokens == tokens ? 130 : landscape(plan);
  };
}

TEST_F(ForSomeTest, AWinnerThatIsSlowOnAHeldOutTreeLikeThoseGivenIsNotTaken) {
  // The held-out tree is the one of 41 + 4 * 9 tokens.
  behaviour.time = [](const plan::Plan &plan) {
    return plan.readTokens == 41 + 4 * 9 && plan.partition == spec::Partition::Query ? 300 : landscape(plan);
  };
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  int kept = 0;
  for (const ClassReport &one : report->classes)
    if (one.heldOut > 0) {
      EXPECT_TRUE(one.entry.keepsDefault);
      EXPECT_EQ(one.note, "the winner is slower than the untuned config on trees that were held out");
      ++kept;
    }
  EXPECT_EQ(kept, 1);
}

TEST_F(ForSomeTest, AWinnerThatIsSlowOnHeldOutTreesIsForTreesLikeThoseGivenAlone) {
  input.samples[2].tree = test::levelTree({1, 4}, {46, 9}); // more tokens, of the same class
  behaviour.time = [](const plan::Plan &plan) {
    return plan.readTokens == 46 + 4 * 9 && plan.partition == spec::Partition::Query ? 300 : landscape(plan);
  };
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  int forSome = 0;
  for (const ClassReport &one : report->classes) {
    EXPECT_FALSE(one.entry.keepsDefault) << one.note;
    if (one.heldOut == 0) {
      EXPECT_TRUE(one.entry.onlyFor.empty());
      continue;
    }
    ++forSome;
    EXPECT_THAT(one.note, testing::HasSubstr("for trees like those given"));
    EXPECT_GT(one.gain, 1.5);
    ASSERT_EQ(one.entry.onlyFor.size(), static_cast<std::size_t>(one.trees));
    config_cache::TreeClassifier classifier;
    for (const Sample &sample : input.samples) {
      if (classifier.classify(sample.tree) != one.treeClass)
        continue;
      EXPECT_EQ(one.entry.isFor(classifier.measure(sample.tree).coordinates()), !sample.isHeldOut);
    }
  }
  EXPECT_EQ(forSome, 1);
  const auto kept = config_cache::readConfigFile(options.configPath);
  ASSERT_EQ(kept.file.entries.size(), 2U);
  EXPECT_NE(kept.file.entries[0].onlyFor.empty(), kept.file.entries[1].onlyFor.empty());
}

TEST_F(ForSomeTest, AWinnerThatIsSlowOnASearchedTreeNextToTheOthersIsNotTaken) {
  input.samples[1].tree = test::levelTree({1, 4}, {41, 9});
  behaviour.time = fastButOn(41 + 4 * 9);
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  int kept = 0;
  for (const ClassReport &one : report->classes) {
    EXPECT_EQ(one.entry.keepsDefault, one.trees == 2) << one.note;
    if (one.entry.keepsDefault) {
      EXPECT_EQ(one.note, "the winner is slower than the untuned config on trees that were searched on");
      ++kept;
    }
  }
  EXPECT_EQ(kept, 1);
}

TEST_F(ForSomeTest, AWinnerThatIsSlowOnASearchedTreeFarFromTheOthersIsForThoseAlone) {
  input.samples[1].tree = test::levelTree({1, 4}, {46, 9}); // more tokens, of the same class
  behaviour.time = fastButOn(46 + 4 * 9);
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  int forSome = 0;
  for (const ClassReport &one : report->classes) {
    EXPECT_FALSE(one.entry.keepsDefault) << one.note;
    EXPECT_EQ(one.entry.measurement.trees, 1);
    EXPECT_GT(one.gain, 1.5); // of the tree that it is for
    if (one.heldOut == 0)
      continue;
    ++forSome;
    ASSERT_EQ(one.entry.onlyFor.size(), 1U);
    config_cache::TreeClassifier classifier;
    EXPECT_TRUE(one.entry.isFor(classifier.measure(input.samples[0].tree).coordinates()));
    EXPECT_FALSE(one.entry.isFor(classifier.measure(input.samples[1].tree).coordinates()));
  }
  EXPECT_EQ(forSome, 1);
}

TEST_F(ForSomeTest, AWinnerIsForTreesUpToHalfWayToOneOnWhichItIsSlower) {
  input.samples[1].tree = test::levelTree({1, 4}, {44, 9}); // a fourteenth of a doubling away
  behaviour.time = fastButOn(44 + 4 * 9);
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  int forSome = 0;
  for (const ClassReport &one : report->classes) {
    if (one.heldOut == 0)
      continue;
    ++forSome;
    config_cache::TreeClassifier classifier;
    const auto slower = classifier.measure(input.samples[1].tree).place();
    ASSERT_EQ(one.entry.onlyFor.size(), 1U) << one.note;
    EXPECT_NEAR(one.entry.within, config_cache::distanceToNearest(one.entry.onlyFor, slower) / 2, 0.001);
    EXPECT_LT(one.entry.within, config_cache::kLikeness);
    EXPECT_FALSE(one.entry.isFor(slower));
  }
  EXPECT_EQ(forSome, 1);
}

TEST_F(ForSomeTest, WhatIsFasterOnOneOfTheGivenTreesAloneIsForThatOne) {
  // In the mean of both trees as fast as what is untuned.
  const ClassReport one = oneWithTwoTrees(80, 125);
  ASSERT_FALSE(one.entry.keepsDefault) << one.note;
  EXPECT_NEAR(one.gain, 1.25, 0.01);
  EXPECT_EQ(one.entry.measurement.trees, 1);
  config_cache::TreeClassifier classifier;
  EXPECT_TRUE(one.entry.isFor(classifier.measure(input.samples[0].tree).coordinates()));
  EXPECT_FALSE(one.entry.isFor(classifier.measure(input.samples[1].tree).coordinates()));
}

TEST_F(ForSomeTest, WhatIsALittleSlowerOnOneTreeIsForTheOthers) {
  // In the mean faster, but not clearly.
  const ClassReport one = oneWithTwoTrees(97, 101.5);
  ASSERT_FALSE(one.entry.keepsDefault) << one.note;
  EXPECT_NEAR(one.gain, 1.03, 0.005);
  EXPECT_EQ(one.entry.onlyFor.size(), 1U);
}

TEST_F(ForSomeTest, AWinnerOnTreesThatNobodyGaveAloneIsNotTaken) {
  input.samples = {{"few", 0, test::levelTree({1, 4}, {40, 9}), false}};
  options.addsSimilar = true;
  behaviour.time = fastButOn(40 + 4 * 9);
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report->classes.size(), 1U);
  EXPECT_EQ(report->classes[0].trees, 2);
  EXPECT_EQ(report->classes[0].note,
            "the winner is slower than the untuned config on trees that were searched on");
}

TEST_F(ForSomeTest, AFinalistThatIsSlowOnAHeldOutTreeGivesWayToTheNext) {
  // On the tree of 41 + 4 * 9 tokens, the fastest chunk of all others is the slowest.
  options.axes.push_back({"partition", {"query", "node"}});
  behaviour.time = [](const plan::Plan &plan) {
    return plan.readTokens == 41 + 4 * 9 && plan.chunkTokens == 64 ? 300 : landscape(plan);
  };
  const auto report = run();
  ASSERT_TRUE(report.ok()) << report.error().message;
  for (const ClassReport &one : report->classes) {
    EXPECT_FALSE(one.entry.keepsDefault) << one.note;
    EXPECT_EQ(one.entry.config.chunkTokens == 64, one.heldOut == 0);
    EXPECT_EQ(one.entry.config.partition, spec::Partition::Query);
  }
}

} // namespace
} // namespace deft::session
