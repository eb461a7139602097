#include "compiler/config/DevicePrices.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace deft::config {
namespace {

using nlohmann::json;

DevicePrices pricesOf(PricedDevice device, double itemUs) {
  DevicePrices prices;
  prices.device = std::move(device);
  prices.plans.itemUs = prices.kernels.itemUs = itemUs;
  return prices;
}

std::string messageOf(const json &object) {
  const auto read = pricesFromText(object.dump());
  return read ? "" : read.error().message;
}

TEST(DevicePricesTest, ShippedOnesAreThereForBothKindsAndOfNamedDevices) {
  int gpus = 0, processors = 0;
  for (const DevicePrices &prices : shippedPrices()) {
    EXPECT_FALSE(prices.device.name.empty());
    EXPECT_FALSE(prices.note.empty()) << prices.device.name;
    (prices.device.kind == DeviceKind::Gpu ? gpus : processors) += 1;
  }
  EXPECT_GE(gpus, 1);
  EXPECT_GE(processors, 1);
}

TEST(DevicePricesTest, RoundTripKeepsEverything) {
  for (const DevicePrices &prices : shippedPrices()) {
    const auto read = pricesFromText(toJson(prices).dump());
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, prices);
  }
}

TEST(DevicePricesTest, WithoutPricesOfKernelsTheseAreAsThoseOfPlans) {
  json object = toJson(pricesOf({DeviceKind::Cpu, "x86-64-v4", 2, "some"}, 3));
  object.erase("kernels");
  const auto read = pricesFromText(object.dump());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->kernels.itemUs, 3);
}

TEST(DevicePricesTest, WhatIsWrongIsNamed) {
  const json good = toJson(pricesOf({DeviceKind::Gpu, "sm_90", 132, "NVIDIA H200"}, 3));
  EXPECT_EQ(messageOf(good), "");
  const auto with = [&](const char *key, const json &value) {
    json changed = good;
    changed[key] = value;
    return messageOf(changed);
  };
  EXPECT_EQ(with("version", 2), "`version` = 2 is not between 1 and 1");
  EXPECT_EQ(with("format", "deft-configs"), "its format is not deft-prices");
  EXPECT_EQ(with("planes", 1), "the file of prices has the unknown key `planes`");
  EXPECT_EQ(with("plans", {{"item_us", -1}}), "`plans`: cost: `item_us` is -1, a price is from 0 to 1e+06");
  EXPECT_EQ(with("device", {{"kind", "tpu"}, {"arch", "a"}, {"units", 1}, {"name", "b"}}),
            "device kind is `tpu`, neither gpu nor cpu");
}

TEST(DevicePricesTest, OwnPricesComeBeforeThoseOfTheArchitectureAndTheseBeforeAnyGpus) {
  const std::vector known{pricesOf({DeviceKind::Cpu, "x86-64", 132, "NVIDIA H100"}, 0),
                          pricesOf({DeviceKind::Gpu, "sm_80", 108, "NVIDIA A100"}, 1),
                          pricesOf({DeviceKind::Gpu, "sm_90", 78, "NVIDIA GH"}, 2),
                          pricesOf({DeviceKind::Gpu, "sm_90", 132, "NVIDIA H200"}, 3)};
  const auto itemUs = [&](const PricedDevice &device) { return pricesFor(device, known).plans.itemUs; };
  EXPECT_EQ(itemUs({DeviceKind::Gpu, "sm_90", 78, "NVIDIA GH"}), 2);
  EXPECT_EQ(itemUs({DeviceKind::Gpu, "sm_90", 132, "NVIDIA H100"}), 3);
  EXPECT_EQ(itemUs({DeviceKind::Gpu, "sm_90", 80, "NVIDIA H100"}), 2);
  EXPECT_EQ(itemUs({DeviceKind::Gpu, "sm_100", 108, "NVIDIA B200"}), 1);
}

TEST(DevicePricesTest, OfCardsThatAreEquallyNearTheOneWhosePricesAreFittedToMostCounts) {
  const PricedDevice gpu = someGpu();
  const std::vector known{pricesOf({DeviceKind::Gpu, gpu.arch, gpu.units, "NVIDIA H100"}, 1),
                          pricesOf(gpu, 2)};
  EXPECT_EQ(pricesFor({DeviceKind::Gpu, "sm_90", 114, "NVIDIA H100 PCIe"}, known).plans.itemUs, 2);
  EXPECT_EQ(pricesFor({DeviceKind::Gpu, "sm_120", 188, "other"}, known).plans.itemUs, 2);
  EXPECT_EQ(pricesFor({DeviceKind::Gpu, "sm_90", 132, "NVIDIA H100"}, known).plans.itemUs, 1);
}

TEST(DevicePricesTest, RatesOfAHostAreInProportionToItsThreadsAsFarAsMemoryServesThem) {
  const CostCoefficients one = processorPrices(1), four = processorPrices(4), many = processorPrices(64);
  EXPECT_EQ(four.cacheGBs, 4 * one.cacheGBs);
  EXPECT_EQ(four.againGBs, 4 * one.againGBs);
  EXPECT_EQ(four.partialGBs, 4 * one.partialGBs);
  EXPECT_EQ(four.blockGflops, one.blockGflops);
  EXPECT_EQ(many.cacheGBs, 20 * one.cacheGBs);
}

} // namespace
} // namespace deft::config
