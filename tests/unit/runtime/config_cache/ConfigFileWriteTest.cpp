#include "tests/unit/runtime/config_cache/ConfigFileFixture.h"

#include "runtime/config_cache/FileLock.h"

#include <atomic>
#include <csignal>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
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

using ConfigFileWriteTest = ConfigFileFixture;

TEST_F(ConfigFileWriteTest, WritingAddsReplacesAndLeavesTheRest) {
  write({someEntry(kOne, 128), someEntry(kTwo, 128)});
  const auto report =
      mergeWrite(path(), Owner::Deftc, h200(), {someEntry(kTwo, 512), someEntry(kThree, 512)});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->added, 1);
  EXPECT_EQ(report->replaced, 1);
  const std::vector<Entry> found = entries();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].config.chunkTokens, 128);
  EXPECT_EQ(found[1].config.chunkTokens, 512);
  EXPECT_EQ(found[2].config.chunkTokens, 512);
  EXPECT_EQ(mergeWrite(path(), Owner::Deftc, h200(), {someEntry(kTwo, 512)})->unchanged, 1);
}

// Else two processes that know the file by two names would each write without the other's entries.
TEST_F(ConfigFileWriteTest, TwoNamesOfAFileAreOneLock) {
  write({someEntry(kOne)});
  const std::string link = folder_.path("link.json");
  fs::create_symlink(path(), link);
  ASSERT_TRUE(mergeWrite(link, Owner::User, h200(), {someEntry(kTwo)}));
  ASSERT_TRUE(removeEntries(link, [](const Entry &) { return true; }));
  EXPECT_FALSE(fs::exists(link + ".lock"));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_TRUE(entries().empty());
}

TEST_F(ConfigFileWriteTest, InTheCacheNothingIsWrittenThroughALink) {
  write({someEntry(kOne)});
  const std::string theirs = folder_.path("theirs.json");
  for (const bool isThere : {true, false}) {
    if (isThere)
      fs::rename(path(), theirs);
    else
      fs::remove(theirs); // the link leads nowhere, and a file there would be new
    fs::remove(path());
    fs::create_symlink(theirs, path());
    const std::string before = isThere ? readText(theirs) : "";
    const auto written = mergeWrite(path(), Owner::Deftc, h200(), {someEntry(kTwo)});
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().message,
              "`" + path() + "`: it is a link, which is not followed here; it is left as it is");
    EXPECT_EQ(fs::exists(theirs) ? readText(theirs) : "", before);
    EXPECT_FALSE(fs::exists(theirs + ".lock"));
  }
}

TEST_F(ConfigFileWriteTest, FilesOfOtherVersionsAndDevicesAreLeftAlone) {
  fs::create_directories(folder_.path("configs"));
  json other = json::parse(fileText({someEntry(kOne)}));
  other["version"] = 3;
  for (const std::string &text : {other.dump(), [] {
                                    ConfigFile file;
                                    file.device = h100();
                                    return formatConfigFile(file);
                                  }()}) {
    writeText(path(), text);
    const auto report = mergeWrite(path(), Owner::Deftc, h200(), {someEntry(kTwo)});
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, support::ErrorCode::Environment);
    EXPECT_THAT(report.error().message, HasSubstr("left as it is"));
    EXPECT_EQ(readText(path()), text);
  }
}

TEST_F(ConfigFileWriteTest, WhetherItCanBeWrittenIsKnownBefore) {
  EXPECT_TRUE(checkMergeable(path("new/configs/file.json"), Owner::Deftc, h200()));
  write({someEntry(kOne)});
  EXPECT_TRUE(checkMergeable(path(), Owner::Deftc, h200()));
  EXPECT_THAT(checkMergeable(path(), Owner::Deftc, DeviceKey::ofCpu(3)).error().message,
              HasSubstr("is left as it is"));
  EXPECT_FALSE(checkMergeable(path() + "/file.json", Owner::Deftc, h200())) << "below a file";
  fs::create_directory(path("folder"));
  EXPECT_FALSE(checkMergeable(path("folder"), Owner::Deftc, h200()));
}

TEST_F(ConfigFileWriteTest, ABrokenFileIsSetAsideAndWrittenAnew) {
  fs::create_directories(folder_.path("configs"));
  const std::string broken = fileText({someEntry(kOne)}).substr(0, 200);
  for (int time = 1; time <= 2; ++time) {
    writeText(path(), broken);
    const auto report = mergeWrite(path(), Owner::Deftc, h200(), {someEntry(kTwo)});
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->setAside, path() + ".broken-" + std::to_string(time));
    EXPECT_EQ(readText(report->setAside), broken);
    EXPECT_EQ(entries().size(), 1U);
  }
  writeText(path(), broken);
  EXPECT_FALSE(removeEntries(path(), [](const Entry &) { return true; }));
  EXPECT_EQ(readText(path()), broken);
}

TEST_F(ConfigFileWriteTest, WhatSomebodyNamesIsReplacedOnlyWhereItIsAFileOfConfigs) {
  fs::create_directories(folder_.path("etc"));
  const std::string theirs = folder_.path("etc/passwd");
  for (const std::string &text : {std::string("root:x:0:0\n"), fileText({someEntry(kOne)}).substr(0, 200)}) {
    writeText(theirs, text);
    struct stat before{}, after{};
    ASSERT_EQ(::stat(theirs.c_str(), &before), 0);
    EXPECT_FALSE(checkMergeable(theirs, Owner::User, h200()));
    const auto report = mergeWrite(theirs, Owner::User, h200(), {someEntry(kTwo)});
    ASSERT_FALSE(report);
    EXPECT_THAT(report.error().message, HasSubstr("; it is left as it is"));
    EXPECT_EQ(readText(theirs), text);
    ASSERT_EQ(::stat(theirs.c_str(), &after), 0);
    EXPECT_EQ(before.st_ino, after.st_ino);
    EXPECT_EQ(namesIn(folder_.path("etc")), (std::vector<std::string>{"passwd"}))
        << "nor is a lock laid beside it";
  }
  writeText(theirs, ""); // nothing is lost
  EXPECT_TRUE(mergeWrite(theirs, Owner::User, h200(), {someEntry(kTwo)}));
}

TEST_F(ConfigFileWriteTest, AFileThatIsRewrittenKeepsItsMode) {
  const auto modeOf = [](const std::string &file) {
    struct stat info{};
    EXPECT_EQ(::stat(file.c_str(), &info), 0);
    return info.st_mode & 07777;
  };
  for (const Owner owner : {Owner::Deftc, Owner::User})
    for (const bool isBroken : {false, true}) {
      if (isBroken && owner == Owner::User)
        continue;
      ASSERT_TRUE(mergeWrite(path(), owner, h200(), {someEntry(kOne)}));
      if (isBroken)
        writeText(path(), "{");
      ASSERT_EQ(::chmod(path().c_str(), 0640), 0);
      ASSERT_TRUE(mergeWrite(path(), owner, h200(), {someEntry(kTwo, owner == Owner::Deftc ? 64 : 128)}));
      EXPECT_EQ(modeOf(path()), 0640U);
    }
}

TEST_F(ConfigFileWriteTest, WhatIsKeptInTheCacheIsReadAgainWhateverTheMask) {
  const mode_t before = ::umask(002);
  write({someEntry(kOne)});
  ::umask(before);
  EXPECT_EQ(readConfigFile(path(), support::Trust::Private).state, FileState::Good);
  EXPECT_EQ(support::faultOfPrivateFolder(folder_.path("configs")), "");
}

TEST_F(ConfigFileWriteTest, TheCacheIsNotWrittenWhereOthersMayWrite) {
  write({someEntry(kOne)});
  ASSERT_EQ(::chmod(folder_.path("configs").c_str(), 0777), 0);
  const auto report = mergeWrite(path(), Owner::Deftc, h200(), {someEntry(kTwo)});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message,
            "cannot keep configs in `" + folder_.path("configs") + "`: other users may write it");
  ASSERT_EQ(::chmod(folder_.path("configs").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path().c_str(), 0666), 0);
  const auto file = mergeWrite(path(), Owner::Deftc, h200(), {someEntry(kTwo)});
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message, "`" + path() + "`: other users may write it; it is left as it is");
}

TEST_F(ConfigFileWriteTest, WhatWasCutShortDoesNotTakeThePlaceOfAWholeSearch) {
  Entry whole = someEntry(kOne, 128), cut = someEntry(kOne, 512);
  cut.isComplete = false;
  cut.provenance.date = "2001-12-24T00:00:00Z";
  write({whole});
  const auto stays = mergeWrite(path(), Owner::Deftc, h200(), {cut});
  ASSERT_TRUE(stays);
  EXPECT_EQ(stays->kept, 1);
  EXPECT_EQ(mergeWrite(path(), Owner::Deftc, h200(), {cut}, Conflict::Merge)->unchanged, 1);
  EXPECT_EQ(entries()[0].config.chunkTokens, 128);
  // One of other kernels does not stay.
  fs::remove(path());
  whole.provenance.kernelHash = "old";
  write({whole});
  EXPECT_EQ(mergeWrite(path(), Owner::Deftc, h200(), {cut})->replaced, 1);
  // And a whole search takes the place of what was cut.
  whole = someEntry(kOne, 128);
  EXPECT_EQ(mergeWrite(path(), Owner::Deftc, h200(), {whole})->replaced, 1);
}

TEST_F(ConfigFileWriteTest, EntriesAreRemovedByAQuestion) {
  write({someEntry(kOne), someEntry(kTwo), someEntry(kThree)});
  const auto removed = removeEntries(path(), [](const Entry &entry) { return entry.treeClass == kTwo; });
  ASSERT_TRUE(removed);
  EXPECT_EQ(*removed, 1);
  ASSERT_EQ(entries().size(), 2U);
  const std::string before = readText(path());
  EXPECT_EQ(*removeEntries(path(), [](const Entry &) { return false; }), 0);
  EXPECT_EQ(readText(path()), before);
}

TEST_F(ConfigFileWriteTest, AMergeWriteKeepsTheBetterEntry) {
  Entry old = someEntry(kOne, 128), young = someEntry(kOne, 512);
  young.provenance.date = "2001-12-24T00:00:00Z";
  write({young});
  EXPECT_EQ(mergeWrite(path(), Owner::Deftc, h200(), {old}, Conflict::Merge)->unchanged, 1);
  EXPECT_EQ(entries()[0].config.chunkTokens, 512);
  EXPECT_EQ(mergeWrite(path(), Owner::Deftc, h200(), {old}, Conflict::Replace)->replaced, 1);
  EXPECT_EQ(mergeWrite(path(), Owner::Deftc, h200(), {young}, Conflict::Merge)->replaced, 1);
  EXPECT_EQ(entries()[0].config.chunkTokens, 512);
}

// Eight writers with entries of their own, and a reader that must never see a part or an older state.
TEST_F(ConfigFileWriteTest, ManyProcessesAtOnceLoseNothing) {
  write({someEntry({0, 0, 0, 0, 0})});
  constexpr int kWriters = 8, kRounds = 20;
  std::vector<pid_t> children;
  for (int child = 0; child < kWriters; ++child) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      int status = 0;
      for (int round = 0; round < kRounds && status == 0; ++round)
        status = mergeWrite(path(), Owner::Deftc, h200(), {someEntry({child + 1, round, 0, 0, 0})}) ? 0 : 1;
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

TEST_F(ConfigFileWriteTest, ThreadsOfOneProcessLoseNothing) {
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 10; ++round)
        failures += !mergeWrite(path(), Owner::Deftc, h200(), {someEntry({thread, round, 0, 0, 0})});
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(entries().size(), 40U);
}

TEST_F(ConfigFileWriteTest, AHeldLockIsAnErrorAfterAWhileAndGoesWithItsHolder) {
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

TEST_F(ConfigFileWriteTest, AFullDiskLeavesTheOldFile) {
  fs::create_directory(folder_.path("configs"));
  const int status = inChild([&] {
    if (!module_cache::mountSmallDisk(folder_.path("configs"), 16))
      return kNotAllowed;
    if (!mergeWrite(path(), Owner::Deftc, h200(), {someEntry(kOne)}))
      return 1;
    std::vector<Entry> many;
    for (int i = 0; i < 60; ++i)
      many.push_back(someEntry({i, 0, 0, 0, 0}));
    const auto report = mergeWrite(path(), Owner::Deftc, h200(), many);
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

// A full disk without mounting, so that it is tested on every machine: a limit on the size of files.
TEST_F(ConfigFileWriteTest, AFailedWriteLeavesTheOldFile) {
  write({someEntry(kOne)});
  EXPECT_EQ(inChild([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{1024, 1024};
              ::setrlimit(RLIMIT_FSIZE, &limit);
              const auto report = mergeWrite(path(), Owner::Deftc, h200(), {someEntry(kTwo)});
              return !report && report.error().message.find("File too large") != std::string::npos ? 0 : 1;
            }),
            0);
  EXPECT_EQ(entries().size(), 1U);
  EXPECT_EQ(namesIn(folder_.path("configs")), (std::vector<std::string>{"file.json", "file.json.lock"}));
}

TEST_F(ConfigFileWriteTest, AReadOnlyHomeIsAnErrorThatSaysSo) {
  write({someEntry(kOne)});
  const int status = inChild([&] {
    if (::geteuid() == 0 && (::setegid(65534) != 0 || ::chmod(folder_.path("configs").c_str(), 0555) != 0 ||
                             ::chmod(folder_.path().c_str(), 0555) != 0 || ::seteuid(65534) != 0))
      return kNotAllowed;
    if (::geteuid() != 65534 && ::chmod(folder_.path("configs").c_str(), 0555) != 0)
      return kNotAllowed;
    const auto report = mergeWrite(path(), Owner::User, h200(), {someEntry(kTwo)});
    if (report || report.error().code != support::ErrorCode::Environment ||
        report.error().message.find("Permission denied") == std::string::npos)
      return 1;
    // A folder that is not there cannot be made either; what is there can be read.
    if (mergeWrite(folder_.path("other/file.json"), Owner::User, h200(), {someEntry(kTwo)}))
      return 2;
    return readConfigFile(path()).file.entries.size() == 1 ? 0 : 3;
  });
  ::chmod(folder_.path().c_str(), 0700);
  ::chmod(folder_.path("configs").c_str(), 0700);
  if (status == kNotAllowed)
    GTEST_SKIP() << "this user cannot take rights away";
  EXPECT_EQ(status, 0);
}

TEST_F(ConfigFileWriteTest, AnUnreadableFileIsNeitherUsedNorOverwritten) {
  fs::create_directories(path()); // a folder of that name
  EXPECT_EQ(readConfigFile(path()).state, FileState::Unreadable);
  EXPECT_FALSE(mergeWrite(path(), Owner::Deftc, h200(), {someEntry(kOne)}));
  EXPECT_TRUE(fs::is_directory(path()));
}

} // namespace
} // namespace deft::config_cache
