#include "runtime/module_cache/EntryFiles.h"

#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <sys/stat.h>

namespace deft::module_cache {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char *, 4> kNames{"a", "b", "c", "d"};

class EntryFilesTest : public testing::Test {
protected:
  /// An entry as it should be: each file holds its name.
  std::string entry() const {
    const std::string path = folder_.path("entry");
    fs::create_directory(path);
    ::chmod(path.c_str(), 0700);
    for (const char *const name : kNames) {
      writeText(path + "/" + name, name);
      ::chmod((path + "/" + name).c_str(), 0600);
    }
    return path;
  }

  TestFolder folder_;
};

TEST_F(EntryFilesTest, OnlyWhatNobodyElseCouldHaveWrittenIsRead) {
  const std::string path = entry();
  const auto read = [&] { return readPrivateFiles(path, kNames); };
  ASSERT_TRUE(read());
  EXPECT_EQ(*read(), (std::array<std::string, 4>{"a", "b", "c", "d"}));
  ::chmod((path + "/c").c_str(), 0620);
  EXPECT_FALSE(read());
  ::chmod((path + "/c").c_str(), 0600);
  ::chmod(path.c_str(), 0770);
  EXPECT_FALSE(read());
  ::chmod(path.c_str(), 0700);
  ASSERT_TRUE(read());
  fs::remove(path + "/d");
  EXPECT_FALSE(read());
  fs::create_symlink("c", path + "/d");
  EXPECT_FALSE(read()) << "a link, to a file that could be read";
  fs::remove(path + "/d");
  ASSERT_EQ(::mkfifo((path + "/d").c_str(), 0600), 0);
  EXPECT_FALSE(read()) << "nobody waits for who never writes";
}

TEST_F(EntryFilesTest, AFolderThatIsALinkIsNone) {
  const std::string path = entry();
  fs::create_directory_symlink(path, folder_.path("link"));
  EXPECT_TRUE(readPrivateFiles(path, kNames));
  EXPECT_FALSE(readPrivateFiles(folder_.path("link"), kNames));
  EXPECT_FALSE(readPrivateFiles(folder_.path("none"), kNames));
}

TEST_F(EntryFilesTest, ATemporaryFolderStaysWhereItIsRenamedTo) {
  std::string kept, dropped;
  {
    TemporaryFolder one(folder_.path()), other(folder_.path());
    ASSERT_TRUE(one.ok() && other.ok());
    dropped = other.path();
    EXPECT_NE(one.path(), other.path());
    EXPECT_EQ(fs::status(one.path()).permissions(), fs::perms::owner_all);
    EXPECT_TRUE(one.write("file", std::string_view("a\0b", 3)));
    EXPECT_FALSE(one.write("file", "again"));
    EXPECT_EQ(errno, EEXIST);
    EXPECT_TRUE(other.write("file", ""));
    kept = folder_.path("kept");
    EXPECT_TRUE(one.renameTo(kept));
  }
  EXPECT_EQ(readText(kept + "/file"), std::string("a\0b", 3));
  EXPECT_FALSE(fs::exists(dropped));
  EXPECT_FALSE(TemporaryFolder(folder_.path("none")).ok());
}

/// Another process has written the entry meanwhile.
TEST_F(EntryFilesTest, AnEntryThatIsThereIsNotTaken) {
  const std::string path = entry();
  TemporaryFolder late(folder_.path());
  ASSERT_TRUE(late.write("a", "late"));
  EXPECT_FALSE(late.renameTo(path));
  EXPECT_TRUE(errno == ENOTEMPTY || errno == EEXIST);
  EXPECT_EQ(readText(path + "/a"), "a");
}

TEST_F(EntryFilesTest, OnlyOldTemporariesAreSwept) {
  const auto make = [&](const std::string &name, int minutes) {
    fs::create_directory(folder_.path(name));
    writeText(folder_.path(name) + "/file", "x");
    fs::last_write_time(folder_.path(name), fs::file_time_type::clock::now() - std::chrono::minutes(minutes));
  };
  make(".new-old", 61);
  make(".new-young", 59);
  make("entry", 1000);
  sweepTemporaries(folder_.path());
  EXPECT_EQ(namesIn(folder_.path()), (std::vector<std::string>{".new-young", "entry"}));
}

} // namespace
} // namespace deft::module_cache
