#include "runtime/config_cache/DeviceFile.h"

#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

namespace deft::config_cache {
namespace {

constexpr FileFormat kFormat{"deft-dishes", "dishes", 3};

DeviceKey someDevice() {
  DeviceKey device;
  device.kind = DeviceKey::Kind::Gpu;
  device.arch = "sm_90";
  device.name = "NVIDIA H200";
  device.units = 132;
  return device;
}

TEST(DeviceFileTest, WhatWasWrittenIsRead) {
  const nlohmann::json entries = {{{"dish", "soup"}}, {{"dish", "bread"}}};
  const std::string text = formatDeviceFile(kFormat, someDevice(), entries);
  EXPECT_EQ(text.back(), '\n');
  const DeviceFile file = parseDeviceFile(text, "x", kFormat);
  ASSERT_EQ(file.state, FileState::Good) << file.message;
  EXPECT_EQ(file.device, someDevice());
  EXPECT_EQ(file.entries, entries);
  EXPECT_EQ(file.message, "");
}

TEST(DeviceFileTest, OneOfAnotherFormatSaysWhatItIsNot) {
  const std::string text =
      formatDeviceFile({"deft-shoes", "shoes", 3}, someDevice(), nlohmann::json::array());
  const DeviceFile file = parseDeviceFile(text, "x", kFormat);
  EXPECT_EQ(file.state, FileState::Broken);
  EXPECT_EQ(file.message, "`x`: it is no file of dishes: its `format` is not deft-dishes");
}

TEST(DeviceFileTest, OneOfAnotherVersionIsUnknownWhateverElseItHas) {
  const DeviceFile file =
      parseDeviceFile(R"({"format": "deft-dishes", "version": 4, "kitchens": 1})", "x", kFormat);
  EXPECT_EQ(file.state, FileState::Unknown);
  EXPECT_EQ(file.message, "`x`: it is of version 4, this deftc knows 3");
}

nlohmann::json entryOf(const nlohmann::json &hash) { return {{"provenance", {{"kernel_hash", hash}}}}; }

TEST(DeviceFileTest, EachHashStandsOnce) {
  const nlohmann::json entries = {entryOf("new"), entryOf("old"), entryOf("new"), {{"dish", "soup"}}};
  const std::string text = formatDeviceFile(kFormat, someDevice(), entries);
  const nlohmann::json file = nlohmann::json::parse(text);
  EXPECT_EQ(file["kernel_hashes"], nlohmann::json({"new", "old"}));
  EXPECT_EQ(file["entries"], nlohmann::json({entryOf(0), entryOf(1), entryOf(0), {{"dish", "soup"}}}));
  EXPECT_EQ(parseDeviceFile(text, "x", kFormat).entries, entries);
}

TEST(DeviceFileTest, TheFirstVersionHasThemInItsEntries) {
  nlohmann::json file = nlohmann::json::parse(formatDeviceFile(kFormat, someDevice(), {entryOf("old")}));
  file.erase("kernel_hashes");
  file["entries"] = {entryOf("old"), entryOf("older")};
  file["version"] = 1;
  const DeviceFile read = parseDeviceFile(file.dump(), "x", kFormat);
  ASSERT_EQ(read.state, FileState::Good) << read.message;
  EXPECT_EQ(read.entries, file["entries"]);
}

TEST(DeviceFileTest, AHashThatTheListDoesNotHaveIsNone) {
  nlohmann::json file = nlohmann::json::parse(formatDeviceFile(kFormat, someDevice(), {entryOf("old")}));
  file["entries"] = {entryOf(0), entryOf(1), entryOf(-1)};
  const DeviceFile read = parseDeviceFile(file.dump(), "x", kFormat);
  ASSERT_EQ(read.state, FileState::Good) << read.message;
  EXPECT_EQ(read.entries, nlohmann::json({entryOf("old"), entryOf(nullptr), entryOf(nullptr)}));
  file["kernel_hashes"] = "old";
  EXPECT_EQ(parseDeviceFile(file.dump(), "x", kFormat).message, "`x`: `kernel_hashes` is not an array");
}

TEST(DeviceFileTest, EntriesAreAnArray) {
  const std::string text = formatDeviceFile(kFormat, someDevice(), nlohmann::json::object());
  EXPECT_EQ(parseDeviceFile(text, "x", kFormat).message, "`x`: `entries` is not an array");
}

TEST(DeviceFileTest, OneThatIsNotThereOrNoFileSaysSo) {
  const module_cache::TestFolder folder;
  EXPECT_EQ(readDeviceFile(folder.path("none.json"), support::Trust::Anyone, kFormat).state,
            FileState::Absent);
  EXPECT_EQ(readDeviceFile(folder.path(""), support::Trust::Anyone, kFormat).state, FileState::Unreadable);
}

} // namespace
} // namespace deft::config_cache
