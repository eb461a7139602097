#include "compiler/config/CostCoefficients.h"

#include "compiler/config/DevicePrices.h"
#include "compiler/config/PriceNames.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace deft::config {
namespace {

using nlohmann::json;

std::string messageOf(const json &object) {
  const auto cost = costFromJson(object);
  return cost ? "" : cost.error().message;
}

TEST(CostCoefficientsTest, RoundTripKeepsEveryMember) {
  for (const CostCoefficients &cost : {CostCoefficients(), processorPrices(2), processorPrices(512)}) {
    const auto read = costFromJson(toJson(cost));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, cost);
  }
}

TEST(CostCoefficientsTest, EveryMemberIsReadFromItsOwnKey) {
  // Each key changed alone must change the value, and come back under the same key.
  CostCoefficients cost = processorPrices(2);
  for (const PriceName &price : priceNames()) // else some are left out
    cost.*price.member += 3;
  const json original = toJson(cost);
  EXPECT_EQ(original.size(), priceNames().size() + 2); // and the steps
  for (const auto &[key, value] : original.items()) {
    json changed = original;
    changed[key] = value.is_number_integer() ? json(value.get<int>() + 3) : json(value.get<double>() + 1);
    const auto read = costFromJson(changed);
    ASSERT_TRUE(read.ok()) << key;
    EXPECT_EQ(toJson(*read), changed) << key;
  }
}

TEST(CostCoefficientsTest, MasksAreWrittenWhereTheyHaveAPrice) {
  EXPECT_FALSE(toJson(CostCoefficients()).contains("mask_us"));
  EXPECT_EQ(toJson(processorPrices(2))["mask_us"], 0.03);
}

TEST(CostCoefficientsTest, LightBlocksAreWrittenWhereTheirPricesAreOthersThanByDefault) {
  CostCoefficients cost;
  EXPECT_FALSE(toJson(cost).contains("light_step"));
  cost.lightStep = 2;
  EXPECT_EQ(toJson(cost)["light_step"], 2);
  EXPECT_FALSE(toJson(cost).contains("light_item"));
}

TEST(CostCoefficientsTest, AbsentMembersKeepTheirDefaultsButForYoungerPrices) {
  const auto read = costFromJson({{"item_us", 7}});
  ASSERT_TRUE(read.ok());
  CostCoefficients expected;
  expected.itemUs = 7;
  expected.runUs = expected.slotUs = expected.maskUs = expected.mergedShare = 0;
  EXPECT_EQ(*read, expected);
}

TEST(CostCoefficientsTest, WrongValuesAreNamed) {
  EXPECT_EQ(messageOf(json::array()), "cost: is not an object");
  EXPECT_EQ(messageOf({{"cache_gb_s", 0}}), "cost: `cache_gb_s` is 0, a price is from 0.001 to 1e+09");
  EXPECT_EQ(messageOf({{"step_us", -1}}), "cost: `step_us` is -1, a price is from 0 to 1e+06");
  EXPECT_EQ(messageOf({{"merge_us", "2"}}), "cost: `merge_us` is not a number");
  EXPECT_EQ(messageOf({{"row_step", 2.5}}), "cost: `row_step` is not an integer from 0 to 4096");
  EXPECT_EQ(messageOf({{"token_step", 5000}}), "cost: `token_step` is not an integer from 0 to 4096");
}

TEST(CostCoefficientsTest, PricesWhoseSumsWouldLeaveTheNumbersAreRefused) {
  EXPECT_EQ(messageOf({{"block_gflops", 1e-320}}),
            "cost: `block_gflops` is 9.99989e-321, a price is from 0.001 to 1e+09");
  EXPECT_EQ(messageOf({{"item_us", 1.7e308}}), "cost: `item_us` is 1.7e+308, a price is from 0 to 1e+06");
  EXPECT_EQ(messageOf({{"light_step", 1e4}}), "cost: `light_step` is 10000, a price is from 0 to 1000");
  EXPECT_EQ(messageOf({{"item_us", 1e6}, {"block_gflops", 1e-3}}), "");
  CostCoefficients cost;
  cost.mergeUs = std::nan("");
  EXPECT_EQ(checkCost(cost).error().message, "cost: `merge_us` is nan, a price is from 0 to 1e+06");
}

TEST(CostCoefficientsTest, UnknownKeySuggestsTheNearest) {
  const auto read = costFromJson({{"item_use", 1}});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message, "cost: unknown key `item_use`");
  EXPECT_NE(read.error().hint.find("item_us"), std::string::npos);
}

} // namespace
} // namespace deft::config
