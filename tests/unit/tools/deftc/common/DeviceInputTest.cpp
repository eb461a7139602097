#include "tools/deftc/common/DeviceInput.h"

#include "tests/unit/runtime/config_cache/ConfigTesting.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deft::cli {
namespace {

using config_cache::DeviceKey;
using testing::HasSubstr;

class DeviceInputTest : public testing::Test {
protected:
  DeviceInputTest() {
    places.installedFolder = folder.path();
    for (const DeviceKey &key : {config_cache::h200(), config_cache::h100(),
                                 DeviceKey{DeviceKey::Kind::Cpu, "x86-64-v4", 512, 4, "Some Processor"}})
      module_cache::writeText(folder.path(key.fileName()),
                              config_cache::formatConfigFile({key, {config_cache::someEntry()}, {}, {}}));
  }
  /// The name of the device that is chosen, or what is wrong.
  std::string chosen(const DeviceOptions &options) const {
    const auto device = chooseDevice(options, places);
    return device ? device->key.name : device.error().message;
  }

  module_cache::TestFolder folder;
  config_cache::Places places;
};

TEST_F(DeviceInputTest, APartOfANameNamesADevice) {
  EXPECT_EQ(chosen({.backend = {}, .device = "h200"}), "NVIDIA H200");
  EXPECT_EQ(chosen({.backend = {}, .device = "H100 80gb"}), "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(chosen({.backend = {}, .device = "some"}), "Some Processor");
  EXPECT_EQ(chosen({.backend = {}, .device = "sm_90-132-nvidia_h2"}), "NVIDIA H200") << "of its file";
  const auto device = chooseDevice({.backend = {}, .device = "h200"}, places);
  ASSERT_TRUE(device && device->target);
  EXPECT_EQ(device->target->arch, "sm_90a");
}

TEST_F(DeviceInputTest, WhatNamesSeveralOrNoneIsSaid) {
  EXPECT_THAT(chosen({.backend = {}, .device = "nvidia"}),
              testing::AllOf(HasSubstr("`nvidia` names several devices: "), HasSubstr("NVIDIA H200 ("),
                             HasSubstr("NVIDIA H100 80GB HBM3 ("), testing::Not(HasSubstr("Processor"))));
  EXPECT_EQ(chosen({.backend = "cpu", .device = "h200"}),
            "there are no configs for a device `h200` of the back end `cpu`");
  EXPECT_THAT(chooseDevice({.backend = "cpu", .device = "h200"}, places).error().hint,
              testing::Not(HasSubstr("H200")))
      << "it is no processor";
  const auto none = chooseDevice({.backend = {}, .device = "b200"}, places);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, support::ErrorCode::Usage);
  EXPECT_THAT(none.error().hint, HasSubstr("there are for "));
  EXPECT_THAT(chooseDevice({.backend = {}, .device = "b200"}, {}).error().hint,
              HasSubstr("there are no configs; see deftc cache list"));
}

TEST_F(DeviceInputTest, TheProcessorHasAsManyThreadsAsItIsGiven) {
  const auto device = chooseDevice({.backend = "cpu", .device = {}, .threads = 3}, places);
  ASSERT_TRUE(device);
  EXPECT_EQ(device->key, DeviceKey::ofCpu(3));
  EXPECT_EQ(device->target, nullptr);
}

TEST_F(DeviceInputTest, NamesAreOfAnyCaseAndFilesAreNot) {
  EXPECT_TRUE(isNamed(config_cache::h200(), ""));
  EXPECT_TRUE(isNamed(config_cache::h200(), "nViDiA"));
  EXPECT_TRUE(isNamed(config_cache::h200(), "sm_90"));
  EXPECT_FALSE(isNamed(config_cache::h200(), "SM_90"));
  EXPECT_FALSE(isNamed(config_cache::h200(), "132-nvidia")) << "only a file's beginning";
}

} // namespace
} // namespace deft::cli
