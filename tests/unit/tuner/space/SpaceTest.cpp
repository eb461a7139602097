#include "compiler/config/ConfigJson.h"
#include "compiler/kernels/DefaultConfig.h"
#include "tests/unit/tuner/space/SpaceTesting.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>

namespace deft::space {
namespace {

TEST(SpaceTest, SizeCountsWhatWalkingThroughAllPointsCounts) {
  const Space space = make(llama(), &hopper(), {"shape=sm80,sm90", "partition=union,greedy", "warps=2,4,8"});
  const SpaceSize size = space.size();
  const std::vector<Point> points = space.points();
  EXPECT_EQ(size.legal, static_cast<long long>(points.size()));
  EXPECT_EQ(std::set<Point>(points.begin(), points.end()).size(), points.size());
  long long broken = 0;
  for (const auto &[name, count] : size.broken)
    broken += count;
  EXPECT_EQ(size.all, size.legal + broken);
  EXPECT_GT(size.broken.at("shared memory"), 0);
  EXPECT_GT(size.broken.at("prices"), 0);
}

TEST(SpaceTest, EveryPointCanBeCompiled) {
  const Space space = make(llama(), &hopper(), {"partition=union", "chunk_tokens=0", "stages=2,4"});
  int seen = 0;
  for (const Point &point : space.points()) {
    const auto legal = kernels::checkConfig(space.kernel(), space.configOf(point), &hopper());
    ASSERT_TRUE(legal.ok()) << legal.error().message;
    ++seen;
  }
  EXPECT_GT(seen, 100);
}

TEST(SpaceTest, HoldsTheUntunedConfigOfAGpu) {
  for (const auto &[queryHeads, kvHeads] : {std::pair(32, 32), {32, 8}, {16, 1}, {64, 8}}) {
    const spec::Variant variant = llama(queryHeads, kvHeads);
    const Space space = make(variant, &hopper());
    auto config = kernels::defaultConfig(variant, &hopper());
    ASSERT_TRUE(config.ok());
    const auto point = space.find(*config);
    ASSERT_TRUE(point.has_value()) << queryHeads << "/" << kvHeads << " " << config::toJson(*config).dump();
    EXPECT_EQ(configId(space.configOf(*point)), configId(*config));
    EXPECT_EQ(space.broken(*point), nullptr);
  }
}

TEST(SpaceTest, FindsEveryPointAndNothingElse) {
  const Space space = make(llama(), nullptr, {"chunk_tokens=0,256"});
  for (const Point &point : space.points())
    EXPECT_EQ(space.find(space.configOf(point)), point);
  config::Config other = space.configOf(space.points().front());
  other.chunkTokens = 300;
  EXPECT_EQ(space.find(other), std::nullopt);
  other.chunkTokens = 256;
  other.phases[0].stages = 7; // no axis turns it on a CPU
  EXPECT_EQ(space.find(other), std::nullopt);
}

TEST(SpaceTest, OrdersAreForGpusAndToldApart) {
  const Space space = make(llama(), &hopper(), {"shape=sm90", "partition=union", "chunk_tokens=0,256"});
  std::set<std::string> ids;
  std::map<config::Order, int> counts;
  for (const Point &point : space.points()) {
    const config::Config config = space.configOf(point);
    ++counts[config.order];
    EXPECT_EQ(space.find(config), point);
    ids.insert(configId(config));
  }
  EXPECT_EQ(ids.size(), space.points().size());
  for (const config::Order order : config::kAllOrders)
    EXPECT_EQ(counts[order] * std::ssize(config::kAllOrders), std::ssize(ids)) << config::orderName(order);
  const Space ofCpu = make(llama(), nullptr);
  for (const Point &point : ofCpu.points())
    ASSERT_EQ(ofCpu.configOf(point).order, config::Order::FromRoot);
}

TEST(SpaceTest, NeighboursAreOneStepAway) {
  const Space space = make(llama(), nullptr);
  const Point point = space.points()[200];
  const std::vector<Point> neighbours = space.neighbours(point);
  ASSERT_FALSE(neighbours.empty());
  for (const Point &neighbour : neighbours) {
    EXPECT_EQ(space.broken(neighbour), nullptr);
    int changed = 0;
    for (std::size_t i = 0; i < point.at.size(); ++i) {
      if (point.at[i] == neighbour.at[i])
        continue;
      ++changed;
      if (space.axes(point.shape)[i].isOrdered()) {
        EXPECT_EQ(std::abs(point.at[i] - neighbour.at[i]), 1);
      }
    }
    EXPECT_EQ(changed, 1);
  }
}

TEST(SpaceTest, PricesChangeWhatPlansAreMadeByAndNothingElse) {
  const Space space = make(llama(), nullptr, {"partition=greedy", "chunk_tokens=0", "tile_q=64"});
  std::set<double> items;
  for (const Point &point : space.points()) {
    const config::Config config = space.configOf(point);
    items.insert(config.cost.itemUs);
    EXPECT_EQ(config.cost.cacheGBs, space.cost().cacheGBs);
  }
  EXPECT_GE(items.size(), 3U);
}

TEST(SpaceTest, RoundTripThroughJson) {
  spec::Variant scaled = llama(); // which fewer kernels take
  scaled.params.push_back(
      {"scales", spec::ScalarType::F32, spec::Param::Shape::PerTokenAndHead, std::nullopt, {}, 0});
  scaled.valueFactor = 0;
  for (const spec::Variant &variant : {llama(), scaled})
    for (const target::Target *target : {static_cast<const target::Target *>(nullptr), &hopper()}) {
      const Space space = make(variant, target);
      const auto again = spaceFromJson(toJson(space));
      ASSERT_TRUE(again.ok()) << again.error().message;
      EXPECT_EQ(toJson(*again), toJson(space));
      EXPECT_EQ(again->size().legal, space.size().legal);
      EXPECT_EQ(again->kernel().tokenParams, variant.tokenParams());
      EXPECT_EQ(again->kernel().has.valueFactor, variant.valueFactor.has_value());
    }
}

TEST(SpaceTest, JsonThatIsNoSpaceIsAnError) {
  const nlohmann::json good = toJson(make(llama(), &hopper()));
  for (const char *key : {"query_heads", "kv_heads", "head_dim", "target", "cost", "axes", "shapes"}) {
    nlohmann::json bad = good;
    bad.erase(key);
    EXPECT_FALSE(spaceFromJson(bad).ok()) << key;
  }
  nlohmann::json bad = good;
  bad["kv_heads"] = 0;
  EXPECT_FALSE(spaceFromJson(bad).ok());
  bad = good;
  bad["target"] = "sm_1";
  EXPECT_EQ(spaceFromJson(bad).error().message, "space: unknown target `sm_1`");
  bad = good;
  bad["shapes"][0]["axes"][0]["phase"] = 7;
  EXPECT_EQ(spaceFromJson(bad).error().message, "space: axis `tile_q` of phase 7");
}

} // namespace
} // namespace deft::space
