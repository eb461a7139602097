#include "runtime/config_cache/OwnFile.h"

#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

namespace deft::config_cache {
namespace {

DeviceKey deviceOf(const std::string &name) {
  DeviceKey device;
  device.kind = DeviceKey::Kind::Gpu;
  device.arch = "sm_90";
  device.units = 132;
  device.name = name;
  return device;
}

bool mayBeWritten(FileState state, const std::string &path, Place place, const DeviceKey &of) {
  const std::string message = "`" + path + "`: it is odd";
  return static_cast<bool>(checkOwn({state, of, message}, path, place, deviceOf("one")));
}

TEST(OwnFileTest, OneOfAnotherDeviceIsLeftAsItIs) {
  for (const Place place : {Place::Cache, Place::Named}) {
    EXPECT_TRUE(mayBeWritten(FileState::Good, "x", place, deviceOf("one")));
    EXPECT_FALSE(mayBeWritten(FileState::Good, "x", place, deviceOf("another")));
  }
}

TEST(OwnFileTest, ADamagedOneIsReplacedInTheCacheAlone) {
  const module_cache::TestFolder folder;
  const std::string path = folder.path("file.json");
  module_cache::writeText(path, "{");
  EXPECT_TRUE(mayBeWritten(FileState::Broken, path, Place::Cache, {}));
  EXPECT_FALSE(mayBeWritten(FileState::Broken, path, Place::Named, {}));
  module_cache::writeText(path, "");
  EXPECT_TRUE(mayBeWritten(FileState::Broken, path, Place::Named, {})) << "nothing is lost";
}

TEST(OwnFileTest, WhatCannotBeReadIsNotReplaced) {
  for (const Place place : {Place::Cache, Place::Named}) {
    EXPECT_TRUE(mayBeWritten(FileState::Absent, "x", place, {}));
    for (const FileState state : {FileState::Unknown, FileState::Unreadable, FileState::Untrusted})
      EXPECT_FALSE(mayBeWritten(state, "x", place, {}));
  }
}

} // namespace
} // namespace deft::config_cache
