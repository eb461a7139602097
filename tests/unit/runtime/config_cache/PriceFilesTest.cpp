#include "runtime/config_cache/PriceFiles.h"

#include "compiler/kernels/DefaultConfig.h"
#include "compiler/support/AtomicFile.h"
#include "runtime/config_cache/ConfigChooser.h"
#include "tests/support/Forest.h"
#include "tests/support/VariantBuilder.h"
#include "tests/unit/runtime/config_cache/ConfigTesting.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace deft::config_cache {
namespace {

/// A user's folder of prices.
class PriceFilesTest : public testing::Test {
protected:
  PriceFilesTest() { places_.userPrices = folder_.path("prices"); }
  std::string save(const DeviceKey &device, double itemUs) const {
    config::DevicePrices prices;
    prices.device = pricedDevice(device);
    prices.plans.itemUs = prices.kernels.itemUs = itemUs;
    const auto path = savePrices(places_, device, prices, {{"probes", 30}});
    EXPECT_TRUE(path) << path.error().message;
    return path ? *path : "";
  }

  module_cache::TestFolder folder_;
  Places places_;
};

TEST_F(PriceFilesTest, WithoutFilesTheNearestThatShipAreTaken) {
  const FoundPrices found = findPrices(places_, h200());
  EXPECT_EQ(found.of, pricedDevice(h200()));
  EXPECT_EQ(found.prices.plans, config::nearestPrices(pricedDevice(h200())).plans);
  EXPECT_TRUE(found.path.empty());
  EXPECT_TRUE(found.notes.empty());
}

TEST_F(PriceFilesTest, TheUsersOwnComeBeforeWhatShips) {
  const std::string path = save(h200(), 77);
  const FoundPrices found = findPrices(places_, h200());
  EXPECT_EQ(found.path, path);
  EXPECT_EQ(found.prices.plans.itemUs, 77);
  EXPECT_EQ(std::filesystem::path(path).filename(), h200().fileName());
}

TEST_F(PriceFilesTest, ADeviceWithoutPricesGetsItsArchitecturesNearest) {
  save({DeviceKey::Kind::Gpu, "sm_75", 0, 40, "Tesla T4"}, 55);
  const FoundPrices found = findPrices(places_, {DeviceKey::Kind::Gpu, "sm_75", 0, 36, "Tesla T4G"});
  EXPECT_EQ(found.of.name, "Tesla T4");
  EXPECT_EQ(found.prices.plans.itemUs, 55);
}

TEST_F(PriceFilesTest, ABrokenFileIsPassedOverWithANote) {
  const std::string path = save(h200(), 77);
  module_cache::writeText(path, "{\"format\": \"deft-prices\"");
  const FoundPrices found = findPrices(places_, h200());
  EXPECT_NE(found.prices.plans.itemUs, 77);
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_THAT(found.notes[0], testing::StartsWith("`" + path + "`: "));
  EXPECT_THAT(found.notes[0], testing::EndsWith("; it is not used"));
  EXPECT_EQ(ConfigCache::load(places_, h200()).notes(), found.notes);
}

TEST_F(PriceFilesTest, WhatSomebodyElseMayWriteIsNotUsed) {
  const std::string path = save(h200(), 77);
  std::filesystem::permissions(path, std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  const FoundPrices found = findPrices(places_, h200());
  EXPECT_NE(found.prices.plans.itemUs, 77);
  EXPECT_EQ(found.notes.size(), 1U);
}

TEST_F(PriceFilesTest, ALinkIsNeitherReadNorWrittenThrough) {
  const std::string path = save(h200(), 77), theirs = folder_.path("theirs.json");
  std::filesystem::rename(path, theirs);
  std::filesystem::create_symlink(theirs, path);
  const std::string before = *support::readFile(theirs);
  EXPECT_NE(findPrices(places_, h200()).prices.plans.itemUs, 77);
  const auto saved = savePrices(places_, h200(), {}, {});
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().message,
            "`" + path + "`: it is a link, which is not followed here; it is left as it is");
  EXPECT_EQ(*support::readFile(theirs), before);
}

TEST_F(PriceFilesTest, TheUntunedChoiceIsPlannedAndComparedByThem) {
  save(h200(), 77);
  const auto cache = std::make_shared<const ConfigCache>(ConfigCache::load(places_, h200()));
  const auto variant = std::make_shared<const spec::Variant>(test::VariantBuilder(32, 8, 128).variant);
  const target::Target *target = target::findTarget("sm_90a");
  ConfigChooser chooser(cache, variant, target, *kernels::defaultConfigs(*variant, target), 132);
  EXPECT_EQ(chooser.ruling().config().cost.itemUs, 77);
  EXPECT_EQ(chooser.choose(test::levelTree({1, 50}, {4000, 200})).config().cost.itemUs, 77);
  EXPECT_EQ(chooser.kernelPrices().itemUs, 77);
}

TEST_F(PriceFilesTest, PricesStayWhereEntriesAreLeftOut) {
  save(h200(), 77);
  const ConfigCache rest = ConfigCache::load(places_, h200()).withoutEntries();
  ASSERT_TRUE(rest.prices());
  EXPECT_EQ(rest.prices()->plans.itemUs, 77);
  EXPECT_EQ(rest.device(), h200());
}

TEST_F(PriceFilesTest, WithoutAPlaceNothingIsSaved) { EXPECT_FALSE(savePrices({}, h200(), {}, {})); }

} // namespace
} // namespace deft::config_cache
