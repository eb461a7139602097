#include "tuner/session/EntryFile.h"

#include "tests/unit/runtime/config_cache/ConfigTesting.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace deft::session {
namespace {

using config_cache::Entry;
using config_cache::h200;
using config_cache::someEntry;

class EntryFileTest : public testing::Test {
protected:
  EntryFile open(config_cache::LegalityCheck isOfSchedule = {}) {
    auto file = EntryFile::open(options_, h200(), std::move(isOfSchedule));
    EXPECT_TRUE(file.ok()) << file.error().message;
    return std::move(*file);
  }
  static std::vector<Entry> entriesOf(const EntryFile &file) {
    return config_cache::readConfigFile(file.path()).file.entries;
  }

  module_cache::TestFolder folder_;
  TuneOptions options_;
};

TEST_F(EntryFileTest, TheNamedFileComesBeforeTheDevicesInTheUsersFolder) {
  EXPECT_EQ(open().path(), "");
  options_.places.userFolder = folder_.path("user");
  EXPECT_EQ(open().path(), folder_.path("user/") + h200().fileName());
  options_.configPath = folder_.path("named.json");
  EXPECT_EQ(open().path(), folder_.path("named.json"));
}

TEST_F(EntryFileTest, EntriesAreThereAsSoonAsTheyAreAdded) {
  options_.configPath = folder_.path("configs.json");
  EntryFile file = open();
  EXPECT_FALSE(file.add(someEntry()));
  EXPECT_EQ(entriesOf(file).size(), 1U);
  EXPECT_FALSE(file.add(someEntry({15, 6, 3, 2, 0})));
  EXPECT_FALSE(file.add(someEntry({15, 6, 3, 2, 0}, 512)));
  EXPECT_EQ(entriesOf(file).size(), 2U);
  EXPECT_EQ(file.written().added, 2);
  EXPECT_EQ(file.written().replaced, 1);
  EXPECT_FALSE(file.error());
}

TEST_F(EntryFileTest, WithoutAPlaceEntriesGoNowhere) {
  EntryFile file = open();
  EXPECT_FALSE(file.add(someEntry()));
  EXPECT_FALSE(file.error());
  EXPECT_EQ(file.written().added, 0);
}

TEST_F(EntryFileTest, APlaceThatCannotBeIsSaidBeforeAnythingIsMeasured) {
  module_cache::writeText(folder_.path("file"), "in the way");
  options_.configPath = folder_.path("file/configs.json");
  EXPECT_FALSE(EntryFile::open(options_, h200(), {}).ok());
}

TEST_F(EntryFileTest, WhatCannotBeWrittenIsWrittenWithTheNext) {
  options_.configPath = folder_.path("configs.json");
  EntryFile file = open();
  std::filesystem::create_directory(options_.configPath);
  EXPECT_FALSE(file.add(someEntry()));
  EXPECT_TRUE(file.error());
  std::filesystem::remove(options_.configPath);
  EXPECT_FALSE(file.add(someEntry({15, 6, 3, 2, 0})));
  EXPECT_FALSE(file.error());
  EXPECT_EQ(entriesOf(file).size(), 2U);
}

TEST_F(EntryFileTest, AWholeSearchStaysWhereThisOneWasCutShort) {
  options_.configPath = folder_.path("configs.json");
  EntryFile file = open();
  EXPECT_FALSE(file.add(someEntry()));
  Entry cut = someEntry({14, 6, 3, 2, 0}, 512);
  cut.isComplete = false;
  EXPECT_THAT(file.add(cut).value_or(""), testing::HasSubstr("since this search was cut short"));
  EXPECT_EQ(entriesOf(file)[0].config.chunkTokens, 256);
}

TEST_F(EntryFileTest, AnEntryOfAnotherScheduleStaysUnlessItIsSlower) {
  options_.configPath = folder_.path("configs.json");
  EXPECT_FALSE(open().add(someEntry()));
  const auto no256 = [](const config::Config &config) -> support::Result<void> {
    if (config.chunkTokens == 256)
      return support::Error{support::ErrorCode::Diagnostics, "not in the schedule", ""};
    return {};
  };
  EntryFile file = open(no256);
  Entry slower = someEntry({14, 6, 3, 2, 0}, 512), faster = slower;
  slower.measurement.tunedUs += 1;
  EXPECT_THAT(file.add(slower).value_or(""), testing::HasSubstr("of another schedule is no slower"));
  EXPECT_EQ(entriesOf(file)[0].config.chunkTokens, 256);
  faster.measurement.tunedUs -= 1;
  EXPECT_FALSE(file.add(faster));
  EXPECT_EQ(entriesOf(file)[0].config.chunkTokens, 512);
}

} // namespace
} // namespace deft::session
