#include "tests/unit/runtime/config_cache/ConfigFileFixture.h"

#include <chrono>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace deft::config_cache {
namespace {

namespace fs = std::filesystem;
using module_cache::readText;
using module_cache::writeText;
using nlohmann::json;
using testing::HasSubstr;

using ConfigFileTest = ConfigFileFixture;

TEST_F(ConfigFileTest, IsWrittenSortedAndReadBack) {
  write({someEntry(kTwo), someEntry(kOne)});
  const std::vector<Entry> found = entries();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_TRUE(areEqual(found[0], someEntry(kOne)));
  EXPECT_TRUE(areEqual(found[1], someEntry(kTwo)));
  EXPECT_EQ(readText(path()), fileText({someEntry(kOne), someEntry(kTwo)}));
  EXPECT_EQ(readConfigFile(path()).file.device, h200());
}

TEST_F(ConfigFileTest, AnAbsentFileIsNoError) {
  EXPECT_EQ(readConfigFile(path()).state, FileState::Absent);
  EXPECT_EQ(readConfigFile(path("configs/file.json/below")).state, FileState::Absent);
  EXPECT_EQ(*removeEntries(folder_.path("file.json"), [](const Entry &) { return true; }), 0);
}

TEST_F(ConfigFileTest, NoTruncationIsTakenForAFile) {
  const std::string text = fileText({someEntry(kOne), someEntry(kTwo)});
  ASSERT_EQ(parseConfigFile(text, "x").state, FileState::Good);
  for (std::size_t length = 0; length + 1 < text.size(); ++length) { // without the last newline it is whole
    const FileReading reading = parseConfigFile(std::string_view(text).substr(0, length), "x");
    ASSERT_EQ(reading.state, FileState::Broken) << length;
    ASSERT_THAT(reading.message, HasSubstr("`x`: ")) << length;
  }
}

// Whatever one byte becomes: the file is refused, the entry is refused, or what is read is legal JSON of the
// right types. Nothing throws, and no entry is read under a key that it does not spell.
TEST_F(ConfigFileTest, NoFlippedByteIsHarmful) {
  const std::string text = fileText({someEntry(kOne), someEntry(kTwo)});
  for (std::size_t at = 0; at < text.size(); ++at)
    for (const unsigned mask : {0x01U, 0x10U, 0x80U}) {
      std::string flipped = text;
      flipped[at] = static_cast<char>(static_cast<unsigned char>(flipped[at]) ^ mask);
      const FileReading reading = parseConfigFile(flipped, "x");
      if (reading.state != FileState::Good)
        continue;
      for (const Entry &entry : reading.file.entries) {
        const auto back = entryFromJson(toJson(entry), DeviceKey::Kind::Gpu);
        ASSERT_TRUE(back) << at;
        ASSERT_TRUE(areEqual(*back, entry)) << at;
      }
      const bool isTwice =
          !reading.file.notes.empty() && reading.file.kept.empty(); // one class became the other
      ASSERT_EQ(reading.file.entries.size() + reading.file.kept.size(), isTwice ? 1U : 2U) << at;
    }
}

TEST_F(ConfigFileTest, WhatIsNoFileOfConfigsSaysSo) {
  const auto message = [](const std::string &text) { return parseConfigFile(text, "x").message; };
  EXPECT_EQ(message("[]"), "`x`: it is no file of configs: its `format` is not deftc-configs");
  EXPECT_EQ(message(R"({"format": "deftc-tree"})"),
            "`x`: it is no file of configs: its `format` is not deftc-configs");
  EXPECT_EQ(message(R"({"format": "deftc-configs"})"), "`x`: it has no version");
  EXPECT_EQ(message(R"({"format": "deftc-configs", "version": 3, "anything": [1]})"),
            "`x`: it is of version 3, this deftc knows 2");
  EXPECT_THAT(message(R"({"format": "deftc-configs", "version": 1, "device": {}, "entries": []})"),
              HasSubstr("device"));
  json file = json::parse(fileText({}));
  file["entries"] = 7;
  EXPECT_EQ(message(file.dump()), "`x`: `entries` is not an array");
  EXPECT_EQ(parseConfigFile(R"({"format": "deftc-configs", "version": 3})", "x").state, FileState::Unknown);
}

TEST_F(ConfigFileTest, AnEntryThatIsNotUnderstoodIsNotUsedAndNotLost) {
  json file = json::parse(fileText({someEntry(kOne), someEntry(kTwo)}));
  file["entries"][0]["class"] = "c9-whatever";
  fs::create_directories(folder_.path("configs"));
  writeText(path(), file.dump());
  const FileReading reading = readConfigFile(path());
  ASSERT_EQ(reading.state, FileState::Good);
  ASSERT_EQ(reading.file.entries.size(), 1U);
  ASSERT_EQ(reading.file.notes.size(), 1U);
  EXPECT_THAT(reading.file.notes[0],
              HasSubstr("entry 1 is not used: `c9-whatever` is no class of version c1"));

  write({someEntry(kThree)});
  const json after = json::parse(readText(path()));
  EXPECT_EQ(after["entries"].size(), 3U);
  EXPECT_THAT(readText(path()), HasSubstr("c9-whatever"));

  // Nor when files are merged into another.
  const auto merged = mergeWrite(path("more.json"), Owner::Deftc, readConfigFile(path()).file);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->added, 3);
  EXPECT_EQ(readText(path("more.json")), readText(path()));
  EXPECT_EQ(mergeWrite(path("more.json"), Owner::Deftc, readConfigFile(path()).file)->added, 0);
}

TEST_F(ConfigFileTest, AKeyThatStandsTwiceIsUsedOnce) {
  json file = json::parse(fileText({someEntry(kOne, 128)}));
  Entry later = someEntry(kOne, 512);
  later.provenance.date = "2001-12-24T00:00:00Z";
  for (const bool isFirst : {true, false}) {
    json both = file;
    both["entries"].insert(isFirst ? both["entries"].begin() : both["entries"].end(), toJson(later));
    const FileReading reading = parseConfigFile(both.dump(), "x");
    ASSERT_EQ(reading.file.entries.size(), 1U);
    EXPECT_EQ(reading.file.entries[0].config.chunkTokens, 512);
    EXPECT_THAT(reading.file.notes.at(0), HasSubstr("stands twice"));
  }
}

TEST_F(ConfigFileTest, ManyOfOneKeyTakeNoMoreTimeThanManyOfMany) {
  constexpr int kEntries = 20'000;
  json many = json::parse(fileText({}));
  json entry = toJson(someEntry(kOne));
  const auto secondsFor = [&](const auto &change) {
    many["entries"] = json::array();
    for (int i = 0; i < kEntries; ++i) {
      change(entry, i);
      many["entries"].push_back(entry);
    }
    const std::string text = many.dump();
    const auto start = std::chrono::steady_clock::now();
    const FileReading reading = parseConfigFile(text, "x");
    EXPECT_EQ(reading.state, FileState::Good);
    EXPECT_LE(reading.file.notes.size(), 9U);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const double ofMany = secondsFor(
      [](json &one, int i) { one["class"] = TreeClass{i % 30, i / 30 % 30, i / 900, 1, 0}.text(); });
  const double ofOne =
      secondsFor([](json &one, int i) { one["measurement"]["tuned_us"] = 1 + kEntries - i; });
  EXPECT_LT(ofOne, 3 * ofMany + 0.5);
}

TEST_F(ConfigFileTest, WhatIsWrongInManyWaysIsToldInAFew) {
  json many = json::parse(fileText({}));
  for (int i = 0; i < 100; ++i)
    many["entries"].push_back(i);
  const FileReading reading = parseConfigFile(many.dump(), "x");
  ASSERT_EQ(reading.file.notes.size(), 9U);
  EXPECT_EQ(reading.file.notes.back(), "`x`: 92 more faults like these");
  EXPECT_EQ(reading.file.kept.size(), 100U);
}

TEST_F(ConfigFileTest, MergingDoesNotDependOnTheOrder) {
  std::vector<ConfigFile> files(4);
  for (int i = 0; i < 4; ++i) {
    files[i].device = h200();
    Entry entry = someEntry(kOne, 64 * (i + 1));
    entry.measurement.tunedUs = i == 2 ? 19 : 20; // the shortest of the latest
    entry.provenance.date = i == 0 ? "2001-01-01T00:00:00Z" : "2001-02-02T00:00:00Z";
    if (i == 3) { // the latest of all, but of other kernels
      entry.provenance.date = "2001-03-03T00:00:00Z";
      entry.provenance.kernelHash = "old";
    }
    files[i].entries = {entry, someEntry({i, 1, 1, 1, 1})};
    files[i].kept = {json{{"unknown", i % 2}}.dump()};
  }
  std::vector<int> order{0, 1, 2, 3};
  std::string expected;
  do {
    ConfigFile merged = files[order[0]];
    for (int i = 1; i < 4; ++i)
      merged = mergeFiles(merged, files[order[i]]).value();
    if (expected.empty())
      expected = formatConfigFile(merged);
    ASSERT_EQ(formatConfigFile(merged), expected);
    ASSERT_EQ(merged.entries.size(), 5U);
    ASSERT_EQ(merged.kept.size(), 2U);
  } while (std::next_permutation(order.begin(), order.end()));
  const ConfigFile merged = parseConfigFile(expected, "x").file;
  const auto one = std::find_if(merged.entries.begin(), merged.entries.end(),
                                [](const Entry &entry) { return entry.treeClass == kOne; });
  EXPECT_EQ(one->config.chunkTokens, 192);
}

TEST_F(ConfigFileTest, DevicesAreNotMixed) {
  ConfigFile a, b;
  a.device = h200();
  b.device = h100();
  const auto merged = mergeFiles(a, b);
  ASSERT_FALSE(merged);
  EXPECT_EQ(merged.error().message,
            "configs of NVIDIA H200 (sm_90, 132 multiprocessors) and of NVIDIA H100 80GB "
            "HBM3 (sm_90, 132 multiprocessors) do not mix");
}

} // namespace
} // namespace deft::config_cache
