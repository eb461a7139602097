#include "tests/unit/runtime/config_cache/ConfigTesting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace deft::config_cache {
namespace {

using nlohmann::json;

TEST(DeviceKeyTest, FilesAreNamedByArchitectureUnitsAndModel) {
  EXPECT_EQ(h200().fileName(), "sm_90-132-nvidia_h200.json");
  EXPECT_EQ(h100().fileName(), "sm_90-132-nvidia_h100_80gb_hbm3.json");
  const DeviceKey cpu{DeviceKey::Kind::Cpu, "x86-64-v4", 512, 16, "Intel(R) Xeon(R) Gold 6330 CPU @ 2.00GHz"};
  EXPECT_EQ(cpu.fileName(), "x86-64-v4-16-intel_r_xeon_r_gold_6330_cpu_2_00ghz.json");
  const DeviceKey strange{DeviceKey::Kind::Cpu, "x86-64-v3", 256, 2, "../\xc3\xa9/ ..\n"};
  EXPECT_EQ(strange.fileName(), "x86-64-v3-2-.json");
}

TEST(DeviceKeyTest, AGpuIsKnownByItsFacts) {
  EXPECT_EQ(DeviceKey::ofGpu({"NVIDIA H200", 9, 0, 132, 0, 0}), h200());
  EXPECT_EQ(h200().text(), "NVIDIA H200 (sm_90, 132 multiprocessors)");
}

TEST(DeviceKeyTest, ThisProcessorIsKnownByModelAndThreads) {
  const DeviceKey one = DeviceKey::ofCpu(1), two = DeviceKey::ofCpu(2);
  EXPECT_EQ(one.kind, DeviceKey::Kind::Cpu);
  EXPECT_FALSE(one.name.empty());
  EXPECT_GE(one.vectorBits, 128);
  EXPECT_NE(one.fileName(), two.fileName());
  EXPECT_FALSE(one.isSibling(two));
  EXPECT_THAT(one.text(), testing::HasSubstr(", 1 thread)"));
}

TEST(DeviceKeyTest, SiblingsHaveTheSameArchitectureAndAsManyUnits) {
  EXPECT_TRUE(h100().isSibling(h200()));
  EXPECT_FALSE(h200().isSibling(h200()));
  DeviceKey other = h100();
  other.units = 114;
  EXPECT_FALSE(other.isSibling(h200()));
  other = h100();
  other.arch = "sm_80";
  EXPECT_FALSE(other.isSibling(h200()));
  other = h100();
  other.kind = DeviceKey::Kind::Cpu;
  EXPECT_FALSE(other.isSibling(h200()));
}

TEST(DeviceKeyTest, AGpuHasATarget) {
  ASSERT_TRUE(targetOf(h200()));
  EXPECT_EQ(targetOf(h200())->arch, "sm_90a");
  DeviceKey other = h200();
  other.arch = "sm_70";
  EXPECT_FALSE(targetOf(other));
  other.arch = "sm_";
  EXPECT_FALSE(targetOf(other));
  EXPECT_FALSE(targetOf(DeviceKey::ofCpu(2)));
}

TEST(DeviceKeyTest, ComesBackFromJson) {
  for (const DeviceKey &key : {h200(), DeviceKey::ofCpu(3)}) {
    const auto back = deviceKeyFromJson(toJson(key));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, key);
  }
}

TEST(DeviceKeyTest, WrongFieldsAreErrors) {
  const auto isRead = [](const char *key, const json &value) {
    json object = toJson(h200());
    object[key] = value;
    return deviceKeyFromJson(object).ok();
  };
  EXPECT_FALSE(isRead("kind", "tpu"));
  EXPECT_FALSE(isRead("arch", ""));
  EXPECT_FALSE(isRead("arch", 90));
  EXPECT_FALSE(isRead("arch", "../../sm_90")) << "a file is named by it";
  EXPECT_FALSE(isRead("name", ""));
  EXPECT_FALSE(isRead("units", 0));
  EXPECT_FALSE(isRead("units", "132"));
  EXPECT_FALSE(isRead("vector_bits", 512)); // of a GPU
  EXPECT_FALSE(isRead("cores", 1));
  EXPECT_FALSE(isRead("kind", "cpu")); // without vector_bits
  EXPECT_FALSE(deviceKeyFromJson(json::array()));
}

} // namespace
} // namespace deft::config_cache
