#include "tuner/session/Race.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

namespace deft::session {
namespace {

struct Track {
  std::map<std::string, double> us;
  double noise = 0.02, drift = 0, outliers = 0; ///< relative; drift: of each round; outliers: their share
  std::mt19937 engine = std::mt19937(1);
  int measurements = 0;

  std::optional<double> measure(const std::string &id, int tree, int round) {
    ++measurements;
    if (!us.contains(id))
      return std::nullopt;
    const double scale = (tree + 1) * (1 + drift * round);
    const bool isOutlier = std::uniform_real_distribution<double>()(engine) < outliers;
    return us.at(id) * scale * std::exp(noise * std::normal_distribution<double>()(engine)) *
           (isOutlier ? 5 : 1);
  }

  std::vector<Racer> run(Racer &reference, const std::vector<std::string> &ids, const RaceOptions &options,
                         int stopAfter = 1 << 30) {
    std::vector<Racer> racers;
    for (const std::string &id : ids)
      racers.push_back({id, {}, false});
    isGood = race(
        reference, racers, options,
        [&](const auto &id, int tree, int round) { return measure(id, tree, round); },
        [&](const Racer &racer, int, double) { dropped.push_back(racer.id); },
        [&] { return measurements >= stopAfter; });
    return racers;
  }
  bool isGood = false;
  std::vector<std::string> dropped = {};
};

TEST(RaceTest, RatiosAreThoseOfTheTimes) {
  Track track{{{"ref", 100}, {"fast", 80}, {"slow", 110}}};
  Racer reference{"ref", {}, false};
  const auto racers = track.run(reference, {"fast", "slow"}, {0, 3, 0, 15, false});
  EXPECT_TRUE(track.isGood);
  EXPECT_NEAR(std::exp(racers[0].score(Estimator::Median)), 0.8, 0.01);
  EXPECT_NEAR(std::exp(racers[1].score(Estimator::Median)), 1.1, 0.01);
  EXPECT_EQ(racers[0].rounds.size(), 15U);
  EXPECT_EQ(track.measurements, 15 * 3 * 3);
}

TEST(RaceTest, ADriftOfTheMachineMeetsAllAlike) {
  // In the course of the race, the machine becomes half as fast.
  Track track{{{"ref", 100}, {"a", 98}, {"b", 102}}, 0.002, 0.1};
  Racer reference{"ref", {}, false};
  const auto racers = track.run(reference, {"a", "b"}, {0, 1, 0, 11, false});
  EXPECT_NEAR(std::exp(racers[0].score(Estimator::Median)), 0.98, 0.005);
  EXPECT_NEAR(std::exp(racers[1].score(Estimator::Median)), 1.02, 0.005);
}

TEST(RaceTest, OutliersDoNotDecide) {
  Track track{{{"ref", 100}, {"fast", 90}, {"slow", 100}}, 0.01, 0, 0.1};
  Racer reference{"ref", {}, false};
  const auto racers = track.run(reference, {"fast", "slow"}, {0, 1, 0, 31, false});
  EXPECT_NEAR(std::exp(racers[0].score(Estimator::Median)), 0.9, 0.02);
  EXPECT_NEAR(std::exp(racers[1].score(Estimator::Median)), 1.0, 0.02);
}

TEST(RaceTest, TheFastestRunsTellWhereOthersDisturbMostOfThem) {
  // Three of five measurements take five times as long, now of this one, now of that.
  Track track{{{"ref", 100}, {"fast", 90}}, 0.001, 0, 0.6};
  Racer reference{"ref", {}, false};
  RaceOptions options{0, 2, 0, 15, false};
  options.estimator = Estimator::Fastest;
  const auto racers = track.run(reference, {"fast"}, options);
  EXPECT_NEAR(std::exp(racers[0].score(Estimator::Fastest)), 0.9, 0.01);
  EXPECT_NEAR(racers[0].ownUs(Estimator::Fastest), 90 * std::sqrt(2.0),
              1); // the second tree takes twice as long
  EXPECT_NEAR(racers[0].referenceUs(Estimator::Fastest), 100 * std::sqrt(2.0), 1);
}

TEST(RaceTest, TheHopelessLeaveEarlyAndTheBestStay) {
  Track track{{{"ref", 100}, {"best", 70}, {"near", 72}, {"far", 85}, {"hopeless", 300}}};
  Racer reference{"ref", {}, false};
  const auto racers = track.run(reference, {"hopeless", "far", "near", "best"}, {0, 1, 0, 7, true});
  EXPECT_EQ(racers[0].rounds.size(), 1U);
  EXPECT_TRUE(racers[1].isOut);
  EXPECT_LT(racers[1].rounds.size(), 4U);
  EXPECT_FALSE(racers[2].isOut);
  EXPECT_FALSE(racers[3].isOut);
  EXPECT_EQ(track.dropped, (std::vector<std::string>{"hopeless", "far"}));
}

TEST(RaceTest, OneThatFailsLeavesTheOthersIn) {
  Track track{{{"ref", 100}, {"good", 90}}};
  Racer reference{"ref", {}, false};
  const auto racers = track.run(reference, {"broken", "good"}, {0, 2, 0, 5, false});
  EXPECT_TRUE(track.isGood);
  EXPECT_TRUE(racers[0].isOut);
  EXPECT_TRUE(racers[0].rounds.empty());
  EXPECT_EQ(racers[1].rounds.size(), 5U);
}

TEST(RaceTest, WithoutAReferenceThereIsNoRace) {
  Track track{{{"good", 90}}};
  Racer reference{"ref", {}, false};
  (void)track.run(reference, {"good"}, {0, 1, 0, 5, false});
  EXPECT_FALSE(track.isGood);
}

TEST(RaceTest, WhatIsWantedComesFirstWhereItIsAsGood) {
  const auto racersOf = [](std::vector<std::pair<std::string, double>> scores) {
    std::vector<Racer> racers;
    for (const auto &[id, score] : scores)
      racers.push_back({id, {{{score}, {0}}}, false});
    return racers;
  };
  const auto first = [&](std::vector<Racer> racers, const std::string &wanted) {
    putFirst(
        racers, [&](const Racer &racer) { return racer.id.starts_with(wanted); }, Estimator::Median, 0.01,
        -0.05);
    return racers.empty() ? "" : racers.front().id;
  };
  EXPECT_EQ(first(racersOf({{"best", -0.1}, {"wanted 1", -0.095}, {"wanted 2", -0.094}}), "wanted"),
            "wanted 1");
  EXPECT_EQ(first(racersOf({{"best", -0.1}, {"wanted", -0.085}}), "wanted"), "best") << "too far behind";
  EXPECT_EQ(first(racersOf({{"best", -0.05}, {"wanted", -0.045}}), "wanted"), "best") << "hardly faster";
  EXPECT_EQ(first(racersOf({{"best", -0.1}, {"other", -0.095}}), "wanted"), "best");
  EXPECT_EQ(first(racersOf({{"best", -0.1}, {"wanted", -0.095}}), "best"), "best");
  EXPECT_EQ(first({}, "wanted"), "");
}

TEST(RaceTest, StoppedItKeepsWholeRounds) {
  Track track{{{"ref", 100}, {"a", 90}, {"b", 95}}};
  Racer reference{"ref", {}, false};
  const auto racers = track.run(reference, {"a", "b"}, {0, 2, 0, 9, false}, /*stopAfter=*/16);
  EXPECT_TRUE(track.isGood);
  EXPECT_EQ(reference.rounds.size(), 2U); // 6 measurements a round
  EXPECT_EQ(racers[0].rounds.size(), 2U);
  EXPECT_EQ(racers[1].rounds.size(), 2U);
}

} // namespace
} // namespace deft::session
