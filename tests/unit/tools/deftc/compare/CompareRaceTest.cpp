#include "tools/deftc/compare/CompareRace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace deft::cli {
namespace {

using testing::ElementsAre;

/// Nobody asks it.
config_cache::ConfigChooser someChooser() {
  auto variant = std::make_shared<spec::Variant>();
  variant->queryHeads = variant->kvHeads = 1;
  variant->tensors = spec::Tensors::alike(16);
  return {std::make_shared<config_cache::ConfigCache>(), std::move(variant), nullptr, config::Config()};
}

/// Takes the next of its times, and says who ran when.
class Runner : public RunBackend {
public:
  Runner(char name, std::vector<double> times, std::string &order)
      : RunBackend(someChooser()), name_(name), times_(std::move(times)), order_(order) {}
  std::string name() const override { return "fake"; }
  std::string device() const override { return "fake"; }
  int blocks() const override { return 1; }
  support::Result<void> load(const exec::Inputs &) override { return {}; }
  support::Result<void> runOnce(const plan::Plan &, exec::Outputs &) override { return {}; }
  support::Result<RunTimes> run(const plan::Plan &, exec::Outputs &, int) override {
    order_ += name_;
    if (times_.empty())
      return support::Error{support::ErrorCode::Environment, "out of times", ""};
    const double us = times_.front();
    times_.erase(times_.begin());
    return RunTimes{us, us, us, 3};
  }
  support::Result<RunTimes> runSelecting(const plan::Plan &, exec::Outputs &, exec::Selection &,
                                         int) override {
    return RunTimes{};
  }
  support::Result<RunTimes> runSparse(const exec::Selection &, exec::Outputs &, int) override {
    return RunTimes{};
  }
  support::Result<RunTimes> runGiven(const plan::Plan &, const exec::GivenLists &, exec::Outputs &,
                                     int) override {
    return RunTimes{};
  }

private:
  char name_;
  std::vector<double> times_;
  std::string &order_;
};

class CompareRaceTest : public testing::Test {
protected:
  CompareRacer racer(char name, std::vector<double> times) {
    runners_.push_back(std::make_unique<Runner>(name, std::move(times), order));
    CompareRacer made;
    made.backend = runners_.back().get();
    return made;
  }

  std::string order;
  std::ostringstream out, err;
  Context context{out, err, false, false, {}, false};

private:
  std::vector<std::unique_ptr<Runner>> runners_;
};

TEST_F(CompareRaceTest, EveryOtherRoundGoesTheOtherWay) {
  std::vector<CompareRacer> racers{racer('a', {3, 1, 8}), racer('b', {}), racer('c', {5, 5, 4})};
  racers[1].row.fault = "no room";
  const auto rounds = race(context, racers, 3, "racing");
  ASSERT_TRUE(rounds) << rounds.error().message;
  EXPECT_EQ(*rounds, 3);
  EXPECT_EQ(order, "accaac");
  EXPECT_THAT(racers[0].us, ElementsAre(3, 1, 8));
  EXPECT_EQ(racers[0].row.medianUs, 3);
  EXPECT_EQ(racers[0].row.leastUs, 1);
  EXPECT_EQ(racers[0].row.mostUs, 8);
  EXPECT_EQ(racers[1].row.medianUs, 0) << "it cannot be run";
}

TEST_F(CompareRaceTest, WhereNobodySaysHowManyShortRacesHaveTheMostRounds) {
  std::vector<CompareRacer> racers{racer('a', std::vector<double>(100, 1))};
  EXPECT_EQ(*race(context, racers, 0, "racing"), 15);
  EXPECT_EQ(racers[0].us.size(), 15U);
}

TEST_F(CompareRaceTest, ARunThatFailsEndsTheRace) {
  std::vector<CompareRacer> racers{racer('a', {1, 1, 1}), racer('b', {1})};
  const auto rounds = race(context, racers, 3, "racing");
  ASSERT_FALSE(rounds);
  EXPECT_EQ(rounds.error().message, "out of times");
  EXPECT_EQ(order, "abb");
}

} // namespace
} // namespace deft::cli
