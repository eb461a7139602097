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

bool mayBeWritten(FileState state, const std::string &path, Owner owner, const DeviceKey &of) {
  const std::string message = "`" + path + "`: it is odd";
  return static_cast<bool>(checkOwn({state, of, message}, path, owner, deviceOf("one")));
}

TEST(OwnFileTest, OneOfAnotherDeviceIsLeftAsItIs) {
  for (const Owner owner : {Owner::Deftc, Owner::User}) {
    EXPECT_TRUE(mayBeWritten(FileState::Good, "x", owner, deviceOf("one")));
    EXPECT_FALSE(mayBeWritten(FileState::Good, "x", owner, deviceOf("another")));
  }
}

TEST(OwnFileTest, ADamagedOneIsReplacedInTheCacheAlone) {
  const module_cache::TestFolder folder;
  const std::string path = folder.path("file.json");
  module_cache::writeText(path, "{");
  EXPECT_TRUE(mayBeWritten(FileState::Broken, path, Owner::Deftc, {}));
  EXPECT_FALSE(mayBeWritten(FileState::Broken, path, Owner::User, {}));
  module_cache::writeText(path, "");
  EXPECT_TRUE(mayBeWritten(FileState::Broken, path, Owner::User, {})) << "nothing is lost";
}

TEST(OwnFileTest, WhatCannotBeReadIsNotReplaced) {
  for (const Owner owner : {Owner::Deftc, Owner::User}) {
    EXPECT_TRUE(mayBeWritten(FileState::Absent, "x", owner, {}));
    for (const FileState state : {FileState::Unknown, FileState::Unreadable, FileState::Untrusted})
      EXPECT_FALSE(mayBeWritten(state, "x", owner, {}));
  }
}

} // namespace
} // namespace deft::config_cache
