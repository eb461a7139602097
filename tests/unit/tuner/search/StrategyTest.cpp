#include "tuner/search/Strategy.h"
#include "compiler/config/DevicePrices.h"
#include "tuner/space/MakeSpace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

namespace deft::search {
namespace {

using space::Point;
using space::Space;

Space makeSpace(const std::vector<std::string> &overrides = {}) {
  spec::Variant variant;
  variant.name = "test";
  variant.queryHeads = 8;
  variant.kvHeads = 2;
  variant.tensors = spec::Tensors::alike(64);
  std::vector<space::AxisOverride> changes;
  for (const std::string &text : overrides)
    changes.push_back(*space::parseOverride(text));
  return *space::makeSpace(variant, {nullptr, config::processorPrices(2)}, changes);
}

class FunctionModel : public Predictor {
public:
  explicit FunctionModel(std::function<std::optional<double>(const Point &)> function)
      : function_(std::move(function)) {}
  std::optional<double> microseconds(const Point &point) override { return function_(point); }

private:
  std::function<std::optional<double>(const Point &)> function_;
};

/// A landscape: a best partition, a best chunk and a best tile, each worth some.
double landscape(const Point &point) {
  const auto bowl = [](int at, int best, double width) { return std::pow((at - best) / width, 2); };
  return 100 * (1 + (point.at[0] == 3 ? 0 : 0.3 + 0.1 * point.at[0]) + bowl(point.at[1], 6, 8) +
                bowl(point.at[3], 2, 5));
}

double bestOf(const Space &space) {
  double best = 1e300;
  for (const Point &point : space.points())
    best = std::min(best, landscape(point));
  return best;
}

/// The least time among the first `count` measured.
double measure(Strategy &strategy, int count) {
  double best = 1e300;
  for (int done = 0; done < count;) {
    const std::vector<Point> batch = strategy.propose(4);
    if (batch.empty())
      break;
    for (const Point &point : batch) {
      const double us = landscape(point);
      best = std::min(best, us);
      strategy.tell(point, us);
      ++done;
    }
  }
  return best;
}

TEST(StrategyTest, ExhaustiveProposesEveryPointOnceInOrder) {
  const Space space = makeSpace();
  const auto strategy = exhaustive(space);
  std::vector<Point> seen;
  for (;;) {
    EXPECT_EQ(*strategy->left(), static_cast<long long>(space.points().size() - seen.size()));
    const std::vector<Point> batch = strategy->propose(7);
    if (batch.empty())
      break;
    seen.insert(seen.end(), batch.begin(), batch.end());
  }
  EXPECT_EQ(seen, space.points());
}

TEST(StrategyTest, RandomDrawsNoPointTwiceAndFollowsItsSeed) {
  const Space space = makeSpace({"chunk_tokens=0,256,512"});
  const auto draw = [&](std::uint64_t seed) {
    std::vector<Point> seen;
    const auto strategy = random(space, seed);
    for (std::vector<Point> batch; !(batch = strategy->propose(10)).empty();)
      seen.insert(seen.end(), batch.begin(), batch.end());
    return seen;
  };
  const std::vector<Point> first = draw(1);
  EXPECT_EQ(std::set<Point>(first.begin(), first.end()).size(), first.size());
  EXPECT_GT(first.size(), space.points().size() * 9 / 10);
  for (const Point &point : first)
    EXPECT_EQ(space.broken(point), nullptr);
  EXPECT_EQ(draw(1), first);
  EXPECT_NE(draw(2), first);
}

TEST(StrategyTest, GuidedBeginsWithWhatTheModelRanksFirst) {
  const Space space = makeSpace();
  FunctionModel model([](const Point &point) { return landscape(point); });
  const auto strategy = guided(space, model);
  const std::vector<Point> first = strategy->propose(1);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(landscape(first[0]), bestOf(space));
}

TEST(StrategyTest, GuidedLearnsWhereTheModelIsWrong) {
  const Space space = makeSpace();
  // The model takes the best partition for the worst, and knows nothing of chunks.
  FunctionModel model([](const Point &point) { return point.at[0] == 3 ? 140.0 : 100.0 + point.at[3]; });
  const auto strategy = guided(space, model);
  EXPECT_LT(measure(*strategy, 48), 1.03 * bestOf(space));
}

TEST(StrategyTest, GuidedIsAheadOfRandomInTheMean) {
  const Space space = makeSpace();
  FunctionModel blind([](const Point &) { return 100.0; }); // no help at all
  const double found = measure(*guided(space, blind), 32);
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    sum += measure(*random(space, seed), 32) / 20;
  EXPECT_LT(found, sum);
}

TEST(StrategyTest, GuidedProposesNothingTwiceAndNothingThatCannotBePlanned) {
  const Space space = makeSpace();
  FunctionModel model(
      [](const Point &point) { return point.at[0] == 5 ? std::nullopt : std::optional(landscape(point)); });
  const auto strategy = guided(space, model);
  std::set<Point> seen;
  for (int i = 0; i < 12; ++i)
    for (const Point &point : strategy->propose(8)) {
      EXPECT_TRUE(seen.insert(point).second);
      EXPECT_NE(point.at[0], 5);
      strategy->tell(point, i % 3 == 0 ? std::nullopt : std::optional(landscape(point)));
    }
  EXPECT_GT(seen.size(), 20U);
}

TEST(StrategyTest, GuidedEndsWhereNothingPromisesMore) {
  const Space space = makeSpace({"partition=union", "chunk_tokens=0,256,512", "tile_q=64"});
  FunctionModel model([](const Point &) { return 100.0; });
  const auto strategy = guided(space, model);
  int measured = 0;
  for (std::vector<Point> batch; !(batch = strategy->propose(4)).empty();
       measured += static_cast<int>(batch.size()))
    for (const Point &point : batch)
      strategy->tell(point, 100.0);
  EXPECT_LE(measured, 3);
}

TEST(StrategyTest, TheSameTellsGiveTheSameProposals) {
  const Space space = makeSpace();
  FunctionModel model([](const Point &point) { return 100.0 + point.at[1]; });
  const auto one = guided(space, model), other = guided(space, model);
  for (int i = 0; i < 6; ++i) {
    const std::vector<Point> batch = one->propose(4);
    EXPECT_EQ(other->propose(4), batch);
    for (const Point &point : batch)
      for (Strategy *strategy : {one.get(), other.get()})
        strategy->tell(point, landscape(point));
  }
}

TEST(StrategyTest, NamesAreThoseOfTheCommandLine) {
  for (const StrategyKind kind : {StrategyKind::Exhaustive, StrategyKind::Random, StrategyKind::Guided})
    EXPECT_EQ(strategyFromName(strategyName(kind)), kind);
  EXPECT_EQ(strategyFromName("best"), std::nullopt);
}

} // namespace
} // namespace deft::search
