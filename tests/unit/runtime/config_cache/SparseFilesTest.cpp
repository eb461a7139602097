#include "runtime/config_cache/SparseFiles.h"

#include "tests/unit/runtime/config_cache/ConfigTesting.h"
#include "tests/unit/runtime/config_cache/SparseTesting.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <thread>

namespace deft::config_cache {
namespace {

namespace fs = std::filesystem;
using module_cache::readText;
using module_cache::writeText;
using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;

class SparseFilesTest : public testing::Test {
protected:
  SparseFilesTest() { places_.userSparse = folder_.path("sparse"); }

  std::string path() const { return folder_.path("sparse/" + h200().fileName()); }
  void save(const std::vector<SparseEntry> &entries) const {
    const auto saved = saveSparse(places_, h200(), entries);
    ASSERT_TRUE(saved) << saved.error().message;
    EXPECT_EQ(*saved, path());
  }
  std::vector<SparseEntry> entries() const {
    std::vector<SparseEntry> all;
    const FoundSparse found = findSparse(places_, h200());
    for (const LoadedSparseEntry &loaded : found.tuning.entries())
      all.push_back(loaded.entry);
    return all;
  }
  /// Of what stands in the file now.
  std::string noteOf() const {
    const FoundSparse found = findSparse(places_, h200());
    EXPECT_TRUE(found.tuning.entries().empty());
    return found.notes.size() == 1 ? found.notes[0] : "";
  }

  module_cache::TestFolder folder_;
  Places places_;
};

TEST_F(SparseFilesTest, WhatIsSavedIsFoundForItsDevice) {
  EXPECT_TRUE(entries().empty());
  save({someSparseEntry()});
  EXPECT_EQ(entries(), std::vector{someSparseEntry()});
  EXPECT_EQ(findSparse(places_, h200()).tuning.entries()[0].path, path());
  EXPECT_TRUE(findSparse(places_, h100()).tuning.entries().empty());
  EXPECT_TRUE(findSparse(places_, h200()).notes.empty());
  const ConfigCache cache = ConfigCache::load(places_, h200(), /*hasSparse=*/true);
  EXPECT_EQ(cache.sparse().entries().size(), 1u);
  EXPECT_TRUE(cache.withoutEntries().sparse().entries().empty());
}

TEST_F(SparseFilesTest, OnlyForVariantsThatSelectTheFileIsRead) {
  save({someSparseEntry()});
  EXPECT_TRUE(ConfigCache::load(places_, h200()).sparse().entries().empty());
  writeText(path(), "{");
  EXPECT_THAT(ConfigCache::load(places_, h200()).notes(), testing::IsEmpty());
  EXPECT_THAT(ConfigCache::load(places_, h200(), /*hasSparse=*/true).notes(),
              testing::ElementsAre(EndsWith("; it is not used")));
}

TEST_F(SparseFilesTest, TheSameEntriesGiveTheSameBytes) {
  save({someSparseEntry(4096), someSparseEntry(1024)});
  const std::string text = readText(path());
  fs::remove(path());
  save({someSparseEntry(1024)});
  save({someSparseEntry(4096)});
  EXPECT_EQ(readText(path()), text);
}

TEST_F(SparseFilesTest, CutsForOtherQueriesStayAndTheLastTileThatIsChosenIs) {
  save({someSparseEntry()});
  SparseEntry more = someSparseEntry();
  more.cuts = {{1, 256, 12, 13, 0}, {2, 256, 14, 15, 0}};
  save({more});
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_EQ(entries()[0].cuts.size(), 4u);
  EXPECT_EQ(entries()[0].cuts[0], more.cuts[0]);

  save({someSparseEntry(4096, 64), someSparseEntry(1024, 64)});
  ASSERT_EQ(entries().size(), 3u);
  for (const SparseEntry &entry : entries())
    EXPECT_EQ(entry.isChosen, entry.tileKv == 64) << keyOf(entry);
}

TEST_F(SparseFilesTest, APackagesKernelIsNoChoice) {
  save({someSparseEntry()});
  SparseEntry ofPackage = someSparseEntry();
  ofPackage.isChosen = false;
  save({ofPackage}); // whose tile happens to be that one
  EXPECT_TRUE(entries()[0].isChosen);
  ofPackage.tileKv = 64;
  save({ofPackage});
  ASSERT_EQ(entries().size(), 2u);
  EXPECT_TRUE(entries()[0].isChosen);
  EXPECT_FALSE(entries()[1].isChosen);
}

TEST_F(SparseFilesTest, EveryTruncationIsPassedOverWithANote) {
  save({someSparseEntry()});
  const std::string text = readText(path());
  for (std::size_t size = 0; size + 1 < text.size(); size += 7) {
    writeText(path(), text.substr(0, size));
    EXPECT_THAT(noteOf(), EndsWith("; it is not used")) << size;
  }
}

TEST_F(SparseFilesTest, ForeignFilesAreNotUsed) {
  save({someSparseEntry()});
  const json whole = json::parse(readText(path()));
  const auto noteWith = [&](const char *key, const json &value) {
    json changed = whole;
    changed[key] = value;
    writeText(path(), changed.dump());
    return noteOf();
  };
  EXPECT_THAT(noteWith("format", "deftc-configs"), HasSubstr("its `format` is not deft-sparse"));
  EXPECT_THAT(noteWith("version", 2), HasSubstr("it is of version 2, this deftc knows 1"));
  EXPECT_THAT(noteWith("device", toJson(h100())), HasSubstr("H100"));
  EXPECT_THAT(noteWith("entries", 7), HasSubstr("`entries` is not an array"));
  EXPECT_THAT(noteWith("more", 7), EndsWith("; it is not used"));
}

TEST_F(SparseFilesTest, WhatSomebodyElseMayWriteIsNeitherUsedNorWritten) {
  save({someSparseEntry()});
  fs::permissions(path(), fs::perms::others_write, fs::perm_options::add);
  EXPECT_THAT(noteOf(), EndsWith("; it is not used"));
  EXPECT_FALSE(saveSparse(places_, h200(), {someSparseEntry()}));
  fs::permissions(path(), fs::perms::others_write, fs::perm_options::remove);
  fs::permissions(folder_.path("sparse"), fs::perms::group_write, fs::perm_options::add);
  EXPECT_THAT(noteOf(), EndsWith("; it is not used"));
}

TEST_F(SparseFilesTest, AnEntryThatIsNotUnderstoodIsKept) {
  save({someSparseEntry()});
  json file = json::parse(readText(path()));
  file["entries"].push_back({{"of", "tomorrow"}});
  writeText(path(), file.dump());
  EXPECT_EQ(entries().size(), 1u);
  EXPECT_THAT(findSparse(places_, h200()).notes, testing::ElementsAre(HasSubstr("an entry is not used")));
  save({someSparseEntry(1024)});
  EXPECT_EQ(entries().size(), 2u);
  EXPECT_THAT(readText(path()), HasSubstr("tomorrow"));
}

TEST_F(SparseFilesTest, ABrokenFileIsSetAsideAndOneOfAnotherVersionOrDeviceIsLeft) {
  save({someSparseEntry()});
  const json whole = json::parse(readText(path()));
  writeText(path(), "{");
  save({someSparseEntry()});
  EXPECT_EQ(readText(path() + ".broken-1"), "{");
  json other = whole;
  other["version"] = 2;
  json foreign = whole;
  foreign["device"] = toJson(h100());
  for (const std::string &text : {other.dump(), foreign.dump()}) {
    writeText(path(), text);
    const auto saved = saveSparse(places_, h200(), {someSparseEntry()});
    ASSERT_FALSE(saved);
    EXPECT_THAT(saved.error().message, HasSubstr("left as it is"));
    EXPECT_EQ(readText(path()), text);
  }
}

TEST_F(SparseFilesTest, AFileThatIsNamedIsWrittenAndNoOthersIsTouched) {
  const std::string named = folder_.path("mine.json");
  const auto saved = saveSparse(places_, h200(), {someSparseEntry()}, named);
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_EQ(parseSparseFile(readText(named), named).file.entries, std::vector{someSparseEntry()});
  EXPECT_FALSE(fs::exists(path()));
  writeText(named, "a letter");
  EXPECT_FALSE(saveSparse(places_, h200(), {someSparseEntry()}, named));
  EXPECT_EQ(readText(named), "a letter");
  EXPECT_FALSE(saveSparse({}, h200(), {someSparseEntry()}));
}

TEST_F(SparseFilesTest, TheUsersComeBeforeWhatIsInstalled) {
  places_.installedSparse = folder_.path("share");
  fs::create_directory(places_.installedSparse);
  SparseFile installed;
  installed.device = h200();
  installed.entries = {someSparseEntry(4096, 64)};
  writeText(places_.installedSparse + "/" + h200().fileName(), formatSparseFile(installed));
  EXPECT_EQ(entries()[0].tileKv, 64);
  save({someSparseEntry()});
  ASSERT_EQ(entries().size(), 2u);
  EXPECT_EQ(entries()[0].tileKv, 128);
}

TEST_F(SparseFilesTest, TwoWritersLoseNothing) {
  constexpr int kEach = 8;
  const auto write = [&](int first) {
    for (int i = 0; i < kEach; ++i)
      EXPECT_TRUE(saveSparse(places_, h200(), {someSparseEntry(first + i)}).ok());
  };
  std::thread other(write, 100);
  write(200);
  other.join();
  EXPECT_EQ(entries().size(), 2u * kEach);
}

} // namespace
} // namespace deft::config_cache
