#pragma once

#include "tests/unit/runtime/config_cache/ConfigTesting.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace deft::config_cache {

/// A file of configs in a folder of its own.
class ConfigFileFixture : public testing::Test {
protected:
  std::string path(const std::string &name = "configs/file.json") const { return folder_.path(name); }
  void write(const std::vector<Entry> &entries, Conflict conflict = Conflict::Replace) const {
    const auto report = mergeWrite(path(), Owner::Deftc, h200(), entries, conflict);
    ASSERT_TRUE(report) << report.error().message;
  }
  std::vector<Entry> entries() const {
    FileReading reading = readConfigFile(path());
    EXPECT_EQ(reading.state, FileState::Good) << reading.message;
    EXPECT_THAT(reading.file.notes, testing::IsEmpty());
    return std::move(reading.file.entries);
  }

  module_cache::TestFolder folder_;
};

inline const TreeClass kOne{10, 2, 1, 1, 0}, kTwo{11, 2, 1, 1, 0}, kThree{12, 2, 1, 1, 0};

inline std::string fileText(const std::vector<Entry> &entries) {
  ConfigFile file;
  file.device = h200();
  file.entries = entries;
  return formatConfigFile(file);
}

} // namespace deft::config_cache
