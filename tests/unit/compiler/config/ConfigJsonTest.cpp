#include "compiler/config/ConfigJson.h"
#include "compiler/config/DevicePrices.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace deft::config {
namespace {

Config sample() {
  Config config;
  config.partition = spec::Partition::NodeChunk;
  config.chunkTokens = 512;
  config.phases = {{"wide", 16, Family::Sm80, 64, 128, 3, 8}, {"narrow", -1, Family::Sm90, 16, 32, 4, 2}};
  return config;
}

std::string errorOf(const nlohmann::json &json) {
  const auto config = configFromJson(json, DeviceKind::Gpu);
  return config ? "read" : config.error().message;
}

TEST(ConfigJsonTest, RoundTripKeepsEveryMember) {
  const nlohmann::json json = toJson(sample());
  const auto config = configFromJson(json, DeviceKind::Gpu);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(toJson(*config), json);
  EXPECT_EQ(config->partition, spec::Partition::NodeChunk);
  EXPECT_EQ(config->chunkTokens, 512);
  ASSERT_EQ(config->phases.size(), 2u);
  EXPECT_EQ(config->phases[0].rowsAbove, 16);
  EXPECT_EQ(config->phases[0].tileQ, 64);
  EXPECT_EQ(config->phases[0].tileKv, 128);
  EXPECT_EQ(config->phases[1].family, Family::Sm90);
  EXPECT_EQ(config->phases[1].stages, 4);
  EXPECT_EQ(config->phases[1].warps, 2);
}

/// Files of CPUs are older than their family.
TEST(ConfigJsonTest, WhateverFamilyAFileNamesACpuRunsItsOwn) {
  nlohmann::json json = toJson(sample());
  const auto config = configFromJson(json, DeviceKind::Cpu);
  ASSERT_TRUE(config) << config.error().message;
  for (const PhaseConfig &phase : config->phases)
    EXPECT_EQ(phase.family, Family::Cpu);
  const nlohmann::json written = toJson(*config);
  EXPECT_EQ(written["phases"][0], json["phases"][0]);
  EXPECT_EQ(written["phases"][1]["family"], "sm80");
  EXPECT_EQ(toJson(*configFromJson(written, DeviceKind::Cpu)), written);
  json["phases"][0]["family"] = "cpu";
  EXPECT_EQ(errorOf(json), "config phase 0: `family` is unknown: `cpu`");
}

TEST(ConfigJsonTest, APhaseServesItemsAboveItsBoundThatItsTileHolds) {
  Config config;
  config.phases = {{"wide", 32, Family::Sm80, 64, 64, 2, 4}, {"narrow", -1, Family::Sm80, 16, 64, 2, 4}};
  EXPECT_EQ(phaseFor(config, 33), 0u);
  EXPECT_EQ(phaseFor(config, 16), 1u);
  EXPECT_EQ(phaseFor(config, 17), 0u); // too many for the one that is for them
  EXPECT_EQ(phaseFor(config, 70), 0u);
}

TEST(ConfigJsonTest, EveryKeyIsNeededAndNoOtherIsTaken) {
  const nlohmann::json json = toJson(sample());
  for (const auto &[key, value] : json.items()) {
    nlohmann::json broken = json;
    broken.erase(key);
    EXPECT_EQ(errorOf(broken), "config: `" + key + "` is missing");
  }
  for (const auto &[key, value] : json["phases"][1].items()) {
    nlohmann::json broken = json;
    broken["phases"][1].erase(key);
    EXPECT_EQ(errorOf(broken), "config phase 1: `" + key + "` is missing");
  }
  nlohmann::json extra = json;
  extra["phases"][0]["stage"] = 3;
  const auto config = configFromJson(extra, DeviceKind::Gpu);
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message, "config phase 0: unknown key `stage`");
  EXPECT_EQ(config.error().hint, "did you mean `stages`?");
}

TEST(ConfigJsonTest, WrongTypesAndNamesAreNamed) {
  nlohmann::json json = toJson(sample());
  json["partition"] = "nod";
  EXPECT_EQ(errorOf(json), "config: `partition` is unknown: `nod`");
  json = toJson(sample());
  json["chunk_tokens"] = 1.5;
  EXPECT_EQ(errorOf(json), "config: `chunk_tokens` is not an integer of 32 bits");
  json["chunk_tokens"] = 1LL << 40;
  EXPECT_EQ(errorOf(json), "config: `chunk_tokens` is not an integer of 32 bits");
  json = toJson(sample());
  json["phases"][0]["name"] = 3;
  EXPECT_EQ(errorOf(json), "config phase 0: `name` is not a string");
  json["phases"] = 7;
  EXPECT_EQ(errorOf(json), "config: `phases` is not an array");
  EXPECT_EQ(errorOf(nlohmann::json::array()), "config: is not an object");
}

TEST(ConfigJsonTest, AnOrderIsWrittenWhereItIsNotFromTheRoot) {
  Config config = sample();
  EXPECT_FALSE(toJson(config).contains("order"));
  nlohmann::json json;
  for (const auto &[order, name] : {std::pair{Order::Alternate, "alternate"}, {Order::Mixed, "mixed"}}) {
    config.order = order;
    json = toJson(config);
    EXPECT_EQ(json["order"], name);
    const auto read = configFromJson(json, DeviceKind::Gpu);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->order, order);
  }
  json["order"] = "alternating";
  EXPECT_EQ(errorOf(json), "config: `order` is unknown: `alternating`");
}

TEST(ConfigJsonTest, CostsAreWrittenWhereTheyDiffer) {
  Config config;
  config.phases.resize(1);
  EXPECT_FALSE(toJson(config).contains("cost"));
  config.cost = processorPrices(4);
  const auto read = configFromJson(toJson(config), DeviceKind::Gpu);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->cost, config.cost);

  nlohmann::json wrong = toJson(config);
  wrong["cost"]["item_us"] = "many";
  const auto failed = configFromJson(wrong, DeviceKind::Gpu);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "cost: `item_us` is not a number");
}

} // namespace
} // namespace deft::config
