#include "compiler/support/AtomicFile.h"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace deft::support {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "deft-file-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const char *name) const { return (folder_ / name).string(); }
  std::size_t fileCount() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(AtomicFileTest, WritesAndReadsBackAllBytes) {
  std::string bytes("a\0b\r\n\xff", 6);
  ASSERT_TRUE(writeFileAtomically(path("f"), bytes).ok());
  auto read = readFile(path("f"));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, bytes);
}

TEST_F(AtomicFileTest, ReplacesAndLeavesNoTemporaryFile) {
  ASSERT_TRUE(writeFileAtomically(path("f"), std::string(100000, 'x')).ok());
  ASSERT_TRUE(writeFileAtomically(path("f"), "short").ok());
  EXPECT_EQ(*readFile(path("f")), "short");
  EXPECT_EQ(fileCount(), 1u);
}

TEST_F(AtomicFileTest, ANewFileHasTheModeOfTheMaskAndAnOldOneKeepsItsOwn) {
  const mode_t before = ::umask(0027);
  ASSERT_TRUE(writeFileAtomically(path("f"), "new").ok());
  ::umask(before);
  EXPECT_EQ(fs::status(path("f")).permissions(), fs::perms(0640));
  fs::permissions(path("f"), fs::perms(0600));
  ASSERT_TRUE(writeFileAtomically(path("f"), "old").ok());
  EXPECT_EQ(fs::status(path("f")).permissions(), fs::perms(0600));
}

TEST_F(AtomicFileTest, ALinkStaysAndItsFileIsWritten) {
  fs::create_directory(folder_ / "d");
  fs::create_symlink("d/f", path("link"));
  for (const char *text : {"not there before", "there"}) {
    ASSERT_TRUE(writeFileAtomically(path("link"), text).ok());
    EXPECT_TRUE(fs::is_symlink(path("link")));
    EXPECT_EQ(*readFile(path("d/f")), text);
  }
}

TEST_F(AtomicFileTest, WhatIsNoFileIsWrittenIntoAndNotReplaced) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { std::getline(std::ifstream(path("pipe")), got); });
  EXPECT_TRUE(writeFileAtomically(path("pipe"), "through").ok());
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
  fs::create_symlink("/dev/full", path("full"));
  const auto written = writeFileAtomically(path("full"), "too much");
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find("No space left"), std::string::npos) << written.error().message;
}

TEST_F(AtomicFileTest, AnOpenFileIsWrittenOnAndNotReplaced) {
  ASSERT_TRUE(writeFileAtomically(path("log"), "before ").ok());
  const int open = ::open(path("log").c_str(), O_WRONLY | O_APPEND);
  fs::create_symlink("/proc/self/fd/" + std::to_string(open), path("link")); // as /dev/stdout leads
  EXPECT_TRUE(checkWritable(path("link")).ok());
  EXPECT_TRUE(writeFileAtomically(path("link"), "after").ok());
  ::close(open);
  EXPECT_EQ(*readFile(path("log")), "before after");
}

TEST_F(AtomicFileTest, WhetherItCanBeWrittenIsKnownBefore) {
  EXPECT_TRUE(checkWritable(path("new")).ok());
  ASSERT_TRUE(writeFileAtomically(path("old"), "x").ok());
  EXPECT_TRUE(checkWritable(path("old")).ok());
  EXPECT_TRUE(checkWritable("/dev/null").ok());
  EXPECT_FALSE(checkWritable(folder_.string()).ok());
  EXPECT_FALSE(checkWritable(path("no/folder")).ok());
  EXPECT_FALSE(checkWritable(path("old/below")).ok());
}

TEST_F(AtomicFileTest, WhetherAFolderCanBeWrittenIntoIsKnownBefore) {
  EXPECT_TRUE(checkWritableFolder(folder_.string()).ok());
  EXPECT_TRUE(checkWritableFolder(path("new/below/it")).ok());
  EXPECT_FALSE(fs::exists(path("new")));
  ASSERT_TRUE(writeFileAtomically(path("file"), "x").ok());
  for (const std::string &folder : {path("file"), path("file/below/it")}) {
    const auto refused = checkWritableFolder(folder);
    ASSERT_FALSE(refused.ok()) << folder;
    EXPECT_EQ(refused.error().message, "cannot make the folder `" + folder + "`: Not a directory");
  }
  if (::geteuid() == 0)
    return; // who may write everywhere
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(checkWritableFolder(folder_.string()).error().message,
            "cannot write into `" + folder_.string() + "`: Permission denied");
  EXPECT_FALSE(checkWritableFolder(path("new")).ok());
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(AtomicFileTest, FailureNamesThePathAndLeavesNothing) {
  fs::create_directory(folder_ / "d");
  fs::create_directory(folder_ / "d" / "inner");
  auto written = writeFileAtomically(path("d"), "x"); // a folder cannot be replaced by a file
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::Environment);
  EXPECT_NE(written.error().message.find(path("d")), std::string::npos);
  EXPECT_EQ(fileCount(), 1u);
  EXPECT_FALSE(writeFileAtomically(path("no/such/folder"), "x").ok());
}

TEST_F(AtomicFileTest, ReaderSeesOneOfTheWholeTextsOfTwoWriters) {
  const std::string first(300000, 'a'), second(200000, 'b');
  ASSERT_TRUE(writeFileAtomically(path("f"), first).ok());
  auto write = [&](const std::string &text) {
    for (int i = 0; i < 20; ++i)
      ASSERT_TRUE(writeFileAtomically(path("f"), text).ok());
  };
  std::thread one(write, std::cref(first)), two(write, std::cref(second));
  for (int i = 0; i < 200; ++i) {
    auto read = readFile(path("f"));
    ASSERT_TRUE(read.ok());
    ASSERT_TRUE(*read == first || *read == second) << "a mixture of " << read->size() << " bytes";
  }
  one.join();
  two.join();
}

TEST_F(AtomicFileTest, ReadingTooMuchAFolderOrNothingIsAnError) {
  ASSERT_TRUE(writeFileAtomically(path("f"), "12345").ok());
  EXPECT_TRUE(readFile(path("f"), 5).ok());
  auto tooMuch = readFile(path("f"), 4);
  ASSERT_FALSE(tooMuch.ok());
  EXPECT_NE(tooMuch.error().message.find("limit of 4 bytes"), std::string::npos);
  EXPECT_EQ(readFile(folder_.string()).error().message,
            "cannot read `" + folder_.string() + "`: it is a folder");
  EXPECT_FALSE(readFile(path("absent")).ok());
}

TEST_F(AtomicFileTest, APipeWithANameIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const auto read = readFile(path("pipe"));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message, "cannot read `" + path("pipe") + "`: it is a pipe, not a file");
  EXPECT_EQ(read.error().hint, "for a pipe use /dev/stdin or `<(command)`");
}

TEST_F(AtomicFileTest, AFileBeyondTheLimitOfTheProcessIsAnErrorAndLeavesNothing) {
  ASSERT_TRUE(writeFileAtomically(path("f"), "old").ok());
  const std::string report = path("report"), file = path("f");
  const pid_t child = ::fork();
  if (child == 0) { // which SIGXFSZ would end
    const rlimit limit{4096, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto written = writeFileAtomically(file, std::string(100000, 'x'));
    if (written.ok())
      ::_exit(1);
    std::ofstream(report) << written.error().message << '\n' << written.error().hint;
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(*readFile(report), "cannot write `" + file +
                                   "`: File too large\n"
                                   "it has 100000 bytes, this process may write 4096 (`ulimit -f`)");
  EXPECT_EQ(*readFile(file), "old");
  EXPECT_EQ(fileCount(), 2u);
}

} // namespace
} // namespace deft::support
