#include "tuner/calibrate/Calibrate.h"

#include "runtime/plan/CostModel.h"
#include "runtime/plan/Items.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"
#include "tests/unit/tuner/session/FakeBackend.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace deft::calibrate {
namespace {

/// A machine of other prices than those it is taken for.
config::CostCoefficients truth() {
  config::CostCoefficients cost = config::processorPrices(1);
  cost.blockGflops /= 3;
  cost.launchUs *= 4;
  cost.itemUs *= 3;
  return cost;
}

class CalibrateTest : public testing::Test {
protected:
  CalibrateTest() {
    auto parsed = test::Scalar::variant();
    input_.variant = parsed;
    options_.places.userPrices = folder_.path("prices");
    options_.seconds = 300;
  }

  void backendOf(double noise) {
    test::FakeBehaviour behaviour;
    behaviour.noise = noise;
    behaviour.time = [this](const plan::Plan &plan) {
      plan::CostModel model;
      config::Config config = *program::cpuConfig(input_.variant, 1);
      model.set(plan::VariantFacts::of(input_.variant, config::DeviceKind::Cpu), config, truth(), 1);
      return model.estimate(plan).microseconds;
    };
    input_.backend = test::fakeBackend(input_.variant, behaviour);
  }

  module_cache::TestFolder folder_;
  CalibrateInput input_;
  CalibrateOptions options_;
};

TEST_F(CalibrateTest, AMachinesPricesAreFoundAndKeptForIt) {
  backendOf(0.02);
  const auto made = calibrate(input_, options_);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_GE(made->probes.size(), 20U);
  EXPECT_LE(made->probes.size(), 50U);
  EXPECT_GT(made->before.medianError, 0.5);
  EXPECT_LT(made->after.medianError, 0.1);
  EXPECT_LE(made->after.meanRegret, made->before.meanRegret + 0.01);

  const config_cache::FoundPrices kept = config_cache::findPrices(options_.places, made->device);
  EXPECT_EQ(kept.path, made->path);
  EXPECT_NEAR(kept.prices.plans.launchUs / truth().launchUs, 1, 0.2);
  EXPECT_EQ(nlohmann::json::parse(module_cache::readText(made->path))["calibration"]["probes"].size(),
            made->probes.size());
}

/// On a machine whose tokens take longer, and whose merge does not, more tiles are worth cutting.
TEST_F(CalibrateTest, ACalibrationChangesChunks) {
  backendOf(0);
  const auto made = calibrate(input_, options_);
  ASSERT_TRUE(made) << made.error().message;
  const config::CostCoefficients before = config::processorPrices(1), &after = made->prices.plans;
  EXPECT_NEAR(after.chunkItemUs / before.chunkItemUs, after.itemUs / before.itemUs, 1e-9);
  EXPECT_GT(after.chunkTokenUs, 1.5 * before.chunkTokenUs) << "products take three times as long";
  const config_cache::FoundPrices kept = config_cache::findPrices(options_.places, made->device);
  EXPECT_EQ(kept.prices.plans.chunkTokenUs, after.chunkTokenUs);
  const std::vector<plan::Tile> tiles(40, {0, 8, 0, 1, 1500});
  const auto chunk = [&](const config::CostCoefficients &cost) {
    return plan::chooseChunkTokens(tiles, {4, 8}, cost, 264);
  };
  EXPECT_LT(chunk(after), chunk(before));
}

TEST_F(CalibrateTest, ACalibrationBeginsWithTheOneBefore) {
  backendOf(0);
  ASSERT_TRUE(calibrate(input_, options_));
  const auto again = calibrate(input_, options_);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->from.name, "fake");
  EXPECT_LT(again->before.medianError, 0.05);
}

TEST_F(CalibrateTest, WithoutTimeNothingIsWritten) {
  backendOf(0);
  options_.seconds = 1e-3;
  const auto made = calibrate(input_, options_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "only 0 probes could be timed in 0 s, at least 12 are needed");
  EXPECT_TRUE(config_cache::findPrices(options_.places, {}).path.empty());
}

TEST_F(CalibrateTest, OneThatIsInterruptedWritesNothing) {
  backendOf(0);
  session::Listener listener;
  listener.isCancelled = [] { return true; };
  EXPECT_FALSE(calibrate(input_, options_, listener));
  EXPECT_TRUE(module_cache::namesIn(folder_.path()).empty());
}

} // namespace
} // namespace deft::calibrate
