#include "tests/unit/runtime/config_cache/ConfigTesting.h"

#include "runtime/config_cache/FileLock.h"
#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace deft::config_cache {
namespace {

namespace fs = std::filesystem;
using module_cache::inChild;
using module_cache::kNotAllowed;
using module_cache::namesIn;
using module_cache::readText;
using module_cache::writeText;
using nlohmann::json;
using testing::HasSubstr;

class ConfigFileTest : public testing::Test {
protected:
  std::string path(const std::string &name = "configs/file.json") const { return folder_.path(name); }
  void write(const std::vector<Entry> &entries, Conflict conflict = Conflict::Replace) const {
    const auto report = mergeWrite(path(), Place::Cache, h200(), entries, conflict);
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

const TreeClass kOne{10, 2, 1, 1, 0}, kTwo{11, 2, 1, 1, 0}, kThree{12, 2, 1, 1, 0};

std::string fileText(const std::vector<Entry> &entries) {
  ConfigFile file;
  file.device = h200();
  file.entries = entries;
  return formatConfigFile(file);
}

TEST_F(ConfigFileTest, IsWrittenSortedAndReadBack) {
  write({someEntry(kTwo), someEntry(kOne)});
  const std::vector<Entry> found = entries();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_TRUE(areEqual(found[0], someEntry(kOne)));
  EXPECT_TRUE(areEqual(found[1], someEntry(kTwo)));
  EXPECT_EQ(readText(path()), fileText({someEntry(kOne), someEntry(kTwo)}));
  EXPECT_EQ(readConfigFile(path()).file.device, h200());
}

TEST_F(ConfigFileTest, WritingAddsReplacesAndLeavesTheRest) {
  write({someEntry(kOne, 128), someEntry(kTwo, 128)});
  const auto report =
      mergeWrite(path(), Place::Cache, h200(), {someEntry(kTwo, 512), someEntry(kThree, 512)});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->added, 1);
  EXPECT_EQ(report->replaced, 1);
  const std::vector<Entry> found = entries();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].config.chunkTokens, 128);
  EXPECT_EQ(found[1].config.chunkTokens, 512);
  EXPECT_EQ(found[2].config.chunkTokens, 512);
  EXPECT_EQ(mergeWrite(path(), Place::Cache, h200(), {someEntry(kTwo, 512)})->unchanged, 1);
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
        const auto back = entryFromJson(toJson(entry));
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
  EXPECT_EQ(message(R"({"format": "deftc-configs"})"), "`x`: it does not say its version");
  EXPECT_EQ(message(R"({"format": "deftc-configs", "version": 2, "anything": [1]})"),
            "`x`: it is of version 2, this deftc knows 1");
  EXPECT_THAT(message(R"({"format": "deftc-configs", "version": 1, "device": {}, "entries": []})"),
              HasSubstr("device"));
  json file = json::parse(fileText({}));
  file["entries"] = 7;
  EXPECT_EQ(message(file.dump()), "`x`: `entries` is not an array");
  EXPECT_EQ(parseConfigFile(R"({"format": "deftc-configs", "version": 2})", "x").state, FileState::Unknown);
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
  const auto merged = mergeWrite(path("more.json"), Place::Cache, readConfigFile(path()).file);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->added, 3);
  EXPECT_EQ(readText(path("more.json")), readText(path()));
  EXPECT_EQ(mergeWrite(path("more.json"), Place::Cache, readConfigFile(path()).file)->added, 0);
}

TEST_F(ConfigFileTest, AKeyThatStandsTwiceIsUsedOnce) {
  json file = json::parse(fileText({someEntry(kOne, 128)}));
  Entry later = someEntry(kOne, 512);
  later.provenance.date = "2027-01-01T00:00:00Z";
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

TEST_F(ConfigFileTest, FilesOfOtherVersionsAndDevicesAreLeftAlone) {
  fs::create_directories(folder_.path("configs"));
  json other = json::parse(fileText({someEntry(kOne)}));
  other["version"] = 2;
  for (const std::string &text : {other.dump(), [] {
                                    ConfigFile file;
                                    file.device = h100();
                                    return formatConfigFile(file);
                                  }()}) {
    writeText(path(), text);
    const auto report = mergeWrite(path(), Place::Cache, h200(), {someEntry(kTwo)});
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, support::ErrorCode::Environment);
    EXPECT_THAT(report.error().message, HasSubstr("left as it is"));
    EXPECT_EQ(readText(path()), text);
  }
}

TEST_F(ConfigFileTest, WhetherItCanBeWrittenIsKnownBefore) {
  EXPECT_TRUE(checkMergeable(path("new/configs/file.json"), Place::Cache, h200()));
  write({someEntry(kOne)});
  EXPECT_TRUE(checkMergeable(path(), Place::Cache, h200()));
  EXPECT_THAT(checkMergeable(path(), Place::Cache, DeviceKey::ofCpu(3)).error().message,
              HasSubstr("is left as it is"));
  EXPECT_FALSE(checkMergeable(path() + "/file.json", Place::Cache, h200())) << "below a file";
  fs::create_directory(path("folder"));
  EXPECT_FALSE(checkMergeable(path("folder"), Place::Cache, h200()));
}

TEST_F(ConfigFileTest, ABrokenFileIsSetAsideAndWrittenAnew) {
  fs::create_directories(folder_.path("configs"));
  const std::string broken = fileText({someEntry(kOne)}).substr(0, 200);
  for (int time = 1; time <= 2; ++time) {
    writeText(path(), broken);
    const auto report = mergeWrite(path(), Place::Cache, h200(), {someEntry(kTwo)});
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->setAside, path() + ".broken-" + std::to_string(time));
    EXPECT_EQ(readText(report->setAside), broken);
    EXPECT_EQ(entries().size(), 1U);
  }
  writeText(path(), broken);
  EXPECT_FALSE(removeEntries(path(), [](const Entry &) { return true; }));
  EXPECT_EQ(readText(path()), broken);
}

TEST_F(ConfigFileTest, WhatSomebodyNamesIsReplacedOnlyWhereItIsAFileOfConfigs) {
  fs::create_directories(folder_.path("etc"));
  const std::string theirs = folder_.path("etc/passwd");
  for (const std::string &text : {std::string("root:x:0:0\n"), fileText({someEntry(kOne)}).substr(0, 200)}) {
    writeText(theirs, text);
    struct stat before{}, after{};
    ASSERT_EQ(::stat(theirs.c_str(), &before), 0);
    EXPECT_FALSE(checkMergeable(theirs, Place::Named, h200()));
    const auto report = mergeWrite(theirs, Place::Named, h200(), {someEntry(kTwo)});
    ASSERT_FALSE(report);
    EXPECT_THAT(report.error().message, HasSubstr("; it is left as it is"));
    EXPECT_EQ(readText(theirs), text);
    ASSERT_EQ(::stat(theirs.c_str(), &after), 0);
    EXPECT_EQ(before.st_ino, after.st_ino);
    EXPECT_EQ(namesIn(folder_.path("etc")), (std::vector<std::string>{"passwd"}))
        << "nor is a lock laid beside it";
  }
  writeText(theirs, ""); // nothing is lost
  EXPECT_TRUE(mergeWrite(theirs, Place::Named, h200(), {someEntry(kTwo)}));
}

TEST_F(ConfigFileTest, AFileThatIsRewrittenKeepsItsMode) {
  const auto modeOf = [](const std::string &file) {
    struct stat info{};
    EXPECT_EQ(::stat(file.c_str(), &info), 0);
    return info.st_mode & 07777;
  };
  for (const Place place : {Place::Cache, Place::Named})
    for (const bool isBroken : {false, true}) {
      if (isBroken && place == Place::Named)
        continue;
      ASSERT_TRUE(mergeWrite(path(), place, h200(), {someEntry(kOne)}));
      if (isBroken)
        writeText(path(), "{");
      ASSERT_EQ(::chmod(path().c_str(), 0640), 0);
      ASSERT_TRUE(mergeWrite(path(), place, h200(), {someEntry(kTwo, place == Place::Cache ? 64 : 128)}));
      EXPECT_EQ(modeOf(path()), 0640U);
    }
}

TEST_F(ConfigFileTest, WhatIsKeptInTheCacheIsReadAgainWhateverTheMask) {
  const mode_t before = ::umask(002);
  write({someEntry(kOne)});
  ::umask(before);
  EXPECT_EQ(readConfigFile(path(), support::Trust::Private).state, FileState::Good);
  EXPECT_EQ(support::faultOfPrivateFolder(folder_.path("configs")), "");
}

TEST_F(ConfigFileTest, TheCacheIsNotWrittenWhereOthersMayWrite) {
  write({someEntry(kOne)});
  ASSERT_EQ(::chmod(folder_.path("configs").c_str(), 0777), 0);
  const auto report = mergeWrite(path(), Place::Cache, h200(), {someEntry(kTwo)});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message,
            "cannot keep configs in `" + folder_.path("configs") + "`: other users may write it");
  ASSERT_EQ(::chmod(folder_.path("configs").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path().c_str(), 0666), 0);
  const auto file = mergeWrite(path(), Place::Cache, h200(), {someEntry(kTwo)});
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message, "`" + path() + "`: other users may write it; it is left as it is");
}

TEST_F(ConfigFileTest, WhatWasCutShortDoesNotTakeThePlaceOfAWholeSearch) {
  Entry whole = someEntry(kOne, 128), cut = someEntry(kOne, 512);
  cut.isComplete = false;
  cut.provenance.date = "2027-01-01T00:00:00Z";
  write({whole});
  const auto stays = mergeWrite(path(), Place::Cache, h200(), {cut});
  ASSERT_TRUE(stays);
  EXPECT_EQ(stays->kept, 1);
  EXPECT_EQ(mergeWrite(path(), Place::Cache, h200(), {cut}, Conflict::Merge)->unchanged, 1);
  EXPECT_EQ(entries()[0].config.chunkTokens, 128);
  // One of other kernels does not stay.
  fs::remove(path());
  whole.provenance.kernelHash = "old";
  write({whole});
  EXPECT_EQ(mergeWrite(path(), Place::Cache, h200(), {cut})->replaced, 1);
  // And a whole search takes the place of what was cut.
  whole = someEntry(kOne, 128);
  EXPECT_EQ(mergeWrite(path(), Place::Cache, h200(), {whole})->replaced, 1);
}

TEST_F(ConfigFileTest, EntriesAreRemovedByAQuestion) {
  write({someEntry(kOne), someEntry(kTwo), someEntry(kThree)});
  const auto removed = removeEntries(path(), [](const Entry &entry) { return entry.treeClass == kTwo; });
  ASSERT_TRUE(removed);
  EXPECT_EQ(*removed, 1);
  ASSERT_EQ(entries().size(), 2U);
  const std::string before = readText(path());
  EXPECT_EQ(*removeEntries(path(), [](const Entry &) { return false; }), 0);
  EXPECT_EQ(readText(path()), before);
}

TEST_F(ConfigFileTest, MergingDoesNotDependOnTheOrder) {
  std::vector<ConfigFile> files(4);
  for (int i = 0; i < 4; ++i) {
    files[i].device = h200();
    Entry entry = someEntry(kOne, 64 * (i + 1));
    entry.measurement.tunedUs = i == 2 ? 19 : 20; // the shortest of the latest
    entry.provenance.date = i == 0 ? "2026-01-01T00:00:00Z" : "2026-02-02T00:00:00Z";
    if (i == 3) { // the latest of all, but of other kernels
      entry.provenance.date = "2026-03-03T00:00:00Z";
      entry.provenance.kernelHash = "old";
    }
    files[i].entries = {entry, someEntry({i, 1, 1, 1, 1})};
    files[i].kept = {json{{"unknown", i % 2}}};
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

TEST_F(ConfigFileTest, AMergeWriteKeepsTheBetterEntry) {
  Entry old = someEntry(kOne, 128), young = someEntry(kOne, 512);
  young.provenance.date = "2027-01-01T00:00:00Z";
  write({young});
  EXPECT_EQ(mergeWrite(path(), Place::Cache, h200(), {old}, Conflict::Merge)->unchanged, 1);
  EXPECT_EQ(entries()[0].config.chunkTokens, 512);
  EXPECT_EQ(mergeWrite(path(), Place::Cache, h200(), {old}, Conflict::Replace)->replaced, 1);
  EXPECT_EQ(mergeWrite(path(), Place::Cache, h200(), {young}, Conflict::Merge)->replaced, 1);
  EXPECT_EQ(entries()[0].config.chunkTokens, 512);
}

// Eight writers with entries of their own, and a reader that must never see a part or an older state.
TEST_F(ConfigFileTest, ManyProcessesAtOnceLoseNothing) {
  write({someEntry({0, 0, 0, 0, 0})});
  constexpr int kWriters = 8, kRounds = 20;
  std::vector<pid_t> children;
  for (int child = 0; child < kWriters; ++child) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      int status = 0;
      for (int round = 0; round < kRounds && status == 0; ++round)
        status = mergeWrite(path(), Place::Cache, h200(), {someEntry({child + 1, round, 0, 0, 0})}) ? 0 : 1;
      ::_exit(status);
    }
    children.push_back(pid);
  }
  const pid_t reader = ::fork();
  if (reader == 0) {
    std::size_t least = 1;
    for (int round = 0; round < 300; ++round) {
      const FileReading reading = readConfigFile(path());
      if (reading.state != FileState::Good || reading.file.entries.size() < least)
        ::_exit(1);
      least = reading.file.entries.size();
    }
    ::_exit(0);
  }
  children.push_back(reader);
  for (const pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  EXPECT_EQ(entries().size(), 1U + kWriters * kRounds);
  EXPECT_EQ(namesIn(folder_.path("configs")), (std::vector<std::string>{"file.json", "file.json.lock"}));
}

TEST_F(ConfigFileTest, ThreadsOfOneProcessLoseNothing) {
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 10; ++round)
        failures += !mergeWrite(path(), Place::Cache, h200(), {someEntry({thread, round, 0, 0, 0})});
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(entries().size(), 40U);
}

TEST_F(ConfigFileTest, AHeldLockIsAnErrorAfterAWhileAndGoesWithItsHolder) {
  const std::string lockPath = folder_.path("lock");
  {
    const auto lock = FileLock::take(lockPath);
    ASSERT_TRUE(lock);
    const auto second = FileLock::take(lockPath, 20);
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().message, HasSubstr("is locked by another process"));
  }
  EXPECT_TRUE(FileLock::take(lockPath, 20));
  EXPECT_EQ(inChild([&] {
              const auto lock = FileLock::take(lockPath);
              ::kill(::getpid(), SIGKILL);
              return lock ? 0 : 1;
            }),
            -1);
  EXPECT_TRUE(FileLock::take(lockPath, 20)); // the killed one holds it no more
}

TEST_F(ConfigFileTest, AFullDiskLeavesTheOldFile) {
  fs::create_directory(folder_.path("configs"));
  const int status = inChild([&] {
    if (!module_cache::mountSmallDisk(folder_.path("configs"), 16))
      return kNotAllowed;
    if (!mergeWrite(path(), Place::Cache, h200(), {someEntry(kOne)}))
      return 1;
    std::vector<Entry> many;
    for (int i = 0; i < 60; ++i)
      many.push_back(someEntry({i, 0, 0, 0, 0}));
    const auto report = mergeWrite(path(), Place::Cache, h200(), many);
    if (report || report.error().message.find("No space left on device") == std::string::npos)
      return 2;
    return readConfigFile(path()).file.entries.size() == 1 && namesIn(folder_.path("configs")).size() == 2
               ? 0
               : 3;
  });
  if (status == kNotAllowed)
    GTEST_SKIP() << "mounting is not allowed here";
  EXPECT_EQ(status, 0);
}

// The same without mounting, so that it is tested on every machine: a limit on the size of files.
TEST_F(ConfigFileTest, AFailedWriteLeavesTheOldFile) {
  write({someEntry(kOne)});
  EXPECT_EQ(inChild([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{1024, 1024};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              const auto report = mergeWrite(path(), Place::Cache, h200(), {someEntry(kTwo)});
              return !report && report.error().message.find("File too large") != std::string::npos ? 0 : 1;
            }),
            0);
  EXPECT_EQ(entries().size(), 1U);
  EXPECT_EQ(namesIn(folder_.path("configs")), (std::vector<std::string>{"file.json", "file.json.lock"}));
}

TEST_F(ConfigFileTest, AReadOnlyHomeIsAnErrorThatSaysSo) {
  write({someEntry(kOne)});
  const int status = inChild([&] {
    if (::geteuid() == 0 && (::setegid(65534) != 0 || ::chmod(folder_.path("configs").c_str(), 0555) != 0 ||
                             ::chmod(folder_.path().c_str(), 0555) != 0 || ::seteuid(65534) != 0))
      return kNotAllowed;
    if (::geteuid() != 65534 && ::chmod(folder_.path("configs").c_str(), 0555) != 0)
      return kNotAllowed;
    const auto report = mergeWrite(path(), Place::Named, h200(), {someEntry(kTwo)});
    if (report || report.error().code != support::ErrorCode::Environment ||
        report.error().message.find("Permission denied") == std::string::npos)
      return 1;
    // A folder that is not there cannot be made either; what is there can be read.
    if (mergeWrite(folder_.path("other/file.json"), Place::Named, h200(), {someEntry(kTwo)}))
      return 2;
    return readConfigFile(path()).file.entries.size() == 1 ? 0 : 3;
  });
  ::chmod(folder_.path().c_str(), 0700);
  ::chmod(folder_.path("configs").c_str(), 0700);
  if (status == kNotAllowed)
    GTEST_SKIP() << "this user cannot take rights away";
  EXPECT_EQ(status, 0);
}

TEST_F(ConfigFileTest, AnUnreadableFileIsNeitherUsedNorOverwritten) {
  fs::create_directories(path()); // a folder of that name
  EXPECT_EQ(readConfigFile(path()).state, FileState::Unreadable);
  EXPECT_FALSE(mergeWrite(path(), Place::Cache, h200(), {someEntry(kOne)}));
  EXPECT_TRUE(fs::is_directory(path()));
}

} // namespace
} // namespace deft::config_cache
