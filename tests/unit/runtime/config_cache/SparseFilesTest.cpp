#include "runtime/config_cache/SparseFiles.h"

#include "tests/unit/runtime/config_cache/ConfigTesting.h"
#include "tests/unit/runtime/config_cache/SparseTesting.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <set>
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
  EXPECT_THAT(noteWith("version", 3), HasSubstr("it is of version 3, this deftc knows 2"));
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

TEST_F(SparseFilesTest, ALinkIsNeitherReadNorWrittenThrough) {
  save({someSparseEntry()});
  const std::string theirs = folder_.path("theirs.json");
  fs::rename(path(), theirs);
  fs::create_symlink(theirs, path());
  const std::string before = readText(theirs);
  EXPECT_EQ(noteOf(), "`" + path() + "`: it is a link, which is not followed here; it is not used");
  EXPECT_FALSE(saveSparse(places_, h200(), {someSparseEntry()}));
  EXPECT_EQ(readText(theirs), before);
  fs::remove(path());
  fs::rename(folder_.path("sparse"), folder_.path("elsewhere"));
  fs::create_symlink(folder_.path("elsewhere"), folder_.path("sparse"));
  EXPECT_FALSE(saveSparse(places_, h200(), {someSparseEntry()}));
  EXPECT_FALSE(fs::exists(folder_.path("elsewhere/" + h200().fileName())));
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
  other["version"] = 3;
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

TEST_F(SparseFilesTest, AllFilesThereAreAreFound) {
  save({someSparseEntry()});
  writeText(folder_.path("sparse/broken.json"), "{");
  places_.installedSparse = folder_.path("share");
  fs::create_directory(places_.installedSparse);
  writeText(places_.installedSparse + "/" + h100().fileName(), formatSparseFile({h100(), {}, {}, {}}));
  const std::vector<FoundSparseFile> files = findSparseFiles(places_);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].reading.state, FileState::Broken);
  EXPECT_EQ(files[1].path, path());
  EXPECT_EQ(files[1].reading.file.entries, std::vector{someSparseEntry()});
  EXPECT_EQ(files[2].origin, Origin::Installed);
  EXPECT_EQ(files[2].reading.file.device, h100());
  fs::permissions(places_.userSparse, fs::perms::group_write, fs::perm_options::add);
  EXPECT_EQ(findSparseFiles(places_).front().path, places_.userSparse);
  EXPECT_EQ(findSparseFiles(places_).front().reading.state, FileState::Untrusted);
  EXPECT_EQ(findSparseFiles(places_).size(), 2u);
  EXPECT_TRUE(findSparseFiles({}).empty());
}

TEST_F(SparseFilesTest, AFileSaysWhatItIsHoweverWrongTheRestIs) {
  const std::string one = folder_.path("one.json");
  for (const auto &[text, isSparse] : {std::pair<const char *, bool>{"{}", false},
                                       {"", false},
                                       {"[]", false},
                                       {R"({"format": "deftc-configs"})", false},
                                       {R"({"format": "deft-sparse"})", true}}) {
    writeText(one, text);
    EXPECT_EQ(saysSparse(one), isSparse) << text;
  }
  EXPECT_FALSE(saysSparse(folder_.path("nowhere.json")));
}

SparseEntry ofDay(SparseEntry entry, const std::string &day) {
  entry.provenance.date = day + "T08:30:00Z";
  return entry;
}

SparseFile fileWith(std::vector<SparseEntry> entries) { return {h200(), std::move(entries), {}, {}}; }

TEST_F(SparseFilesTest, FilesMergeToTheSameInWhateverOrderTheyCome) {
  SparseEntry monday = ofDay(someSparseEntry(), "2001-11-23"),
              tuesday = ofDay(someSparseEntry(), "2001-11-24"),
              wednesday = ofDay(someSparseEntry(4096, 64), "2001-11-25");
  tuesday.cuts = {{1, 256, 12, 13, 0}, {2, 256, 14, 15, 0}};
  SparseFile strange = fileWith({wednesday});
  strange.kept = {json{{"of", "tomorrow"}}.dump()};
  std::vector<SparseFile> files{fileWith({monday}), fileWith({tuesday}), strange};
  std::vector<std::size_t> order{0, 1, 2};
  std::set<std::string> texts;
  do {
    const auto merged = mergeSparseFiles({files[order[0]], files[order[1]], files[order[2]]});
    ASSERT_TRUE(merged) << merged.error().message;
    texts.insert(formatSparseFile(*merged));
  } while (std::next_permutation(order.begin(), order.end()));
  ASSERT_EQ(texts.size(), 1u);
  const SparseFile merged = parseSparseFile(*texts.begin(), "merged").file;
  EXPECT_EQ(merged.kept.size(), 1u);
  ASSERT_EQ(merged.entries.size(), 2u); // by key: 128 tokens a tile before 64
  EXPECT_FALSE(merged.entries[0].isChosen) << "the later one is";
  EXPECT_TRUE(merged.entries[1].isChosen);
  ASSERT_EQ(merged.entries[0].cuts.size(), 4u) << "those of both days";
  EXPECT_EQ(merged.entries[0].cuts[0], tuesday.cuts[0]);
  const auto mixed = mergeSparseFiles({files[0], {h100(), {}, {}, {}}});
  ASSERT_FALSE(mixed);
  EXPECT_THAT(mixed.error().message, HasSubstr("do not mix"));
}

TEST_F(SparseFilesTest, TodaysKernelsCountMoreThanTheDateAndADateToComeForNone) {
  SparseEntry stale = ofDay(someSparseEntry(), "2001-11-26"), fresh = ofDay(someSparseEntry(), "2001-11-23");
  stale.provenance.kernelHash = "0123456789abcdef";
  stale.cuts = {{7, 128, 1, 2, 0}};
  EXPECT_EQ(mergeSparseFiles({fileWith({stale}), fileWith({fresh})})->entries, std::vector{fresh});
  const SparseEntry never = ofDay(someSparseEntry(4096, 64), "9999-01-01");
  const auto merged = mergeSparseFiles({fileWith({never}), fileWith({fresh})});
  for (const SparseEntry &entry : merged->entries)
    EXPECT_EQ(entry.isChosen, entry.tileKv == 128) << keyOf(entry);
}

TEST_F(SparseFilesTest, AMergeIntoAFileSaysWhatBecameOfIt) {
  save({someSparseEntry(4096), someSparseEntry(2048)});
  SparseEntry more = someSparseEntry(4096);
  more.provenance.date = timestamp();
  more.cuts = {{3, 128, 1, 2, 0}};
  const auto report =
      mergeIntoSparse(path(), Owner::Deftc, fileWith({more, someSparseEntry(2048), someSparseEntry(1024)}));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->added, 1);
  EXPECT_EQ(report->replaced, 1);
  EXPECT_EQ(report->unchanged, 1);
  ASSERT_EQ(entries().size(), 3u);
  writeText(path(), "{");
  EXPECT_EQ(mergeIntoSparse(path(), Owner::Deftc, fileWith({more}))->setAside, path() + ".broken-1");
  EXPECT_FALSE(mergeIntoSparse(path(), Owner::Deftc, {h100(), {}, {}, {}}));
}

TEST_F(SparseFilesTest, EntriesAreTakenOutAndWhatIsNotUnderstoodStays) {
  save({someSparseEntry(4096), someSparseEntry(1024)});
  json file = json::parse(readText(path()));
  file["entries"].push_back({{"of", "tomorrow"}});
  writeText(path(), file.dump());
  const auto isUnwanted = [](const SparseEntry &entry) { return entry.budget == 1024; };
  EXPECT_EQ(*removeSparseEntries(path(), isUnwanted), 1);
  EXPECT_EQ(*removeSparseEntries(path(), isUnwanted), 0);
  EXPECT_EQ(entries(), std::vector{someSparseEntry(4096)});
  EXPECT_THAT(readText(path()), HasSubstr("tomorrow"));
  EXPECT_EQ(*removeSparseEntries(folder_.path("nowhere.json"), isUnwanted), 0);
  writeText(path(), "{");
  EXPECT_FALSE(removeSparseEntries(path(), isUnwanted));
  EXPECT_EQ(readText(path()), "{");
}

} // namespace
} // namespace deft::config_cache
