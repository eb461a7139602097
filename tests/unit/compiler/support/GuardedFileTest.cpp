#include "compiler/support/GuardedFile.h"

#include "compiler/support/Descriptor.h"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace deft::support {
namespace {

namespace fs = std::filesystem;
using State = GuardedFile::State;

class GuardedFileTest : public testing::Test {
protected:
  GuardedFileTest() {
    folder_ = (fs::temp_directory_path() / "deft-guarded-XXXXXX").string();
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    std::ofstream(path("file")) << "text";
    EXPECT_EQ(::chmod(path("file").c_str(), 0644), 0);
  }
  ~GuardedFileTest() override { fs::remove_all(folder_); }

  std::string path(const std::string &name) const { return folder_ + "/" + name; }

  std::string folder_;
};

TEST_F(GuardedFileTest, AFileIsReadWhole) {
  for (const Trust trust : {Trust::Anyone, Trust::Private}) {
    const GuardedFile file = readGuarded(path("file"), 4, trust);
    EXPECT_EQ(file.state, State::Read);
    EXPECT_EQ(file.bytes, "text");
    EXPECT_EQ(file.fault, "");
  }
}

TEST_F(GuardedFileTest, WhatCannotBeReadSaysWhy) {
  EXPECT_EQ(readGuarded(path("none"), 4, Trust::Anyone).state, State::Absent);
  EXPECT_EQ(readGuarded(path("file/below"), 4, Trust::Anyone).state, State::Absent);
  EXPECT_EQ(readGuarded(path("file"), 3, Trust::Anyone).fault, "it has 4 bytes, more than the limit of 3");
  EXPECT_EQ(readGuarded(folder_, 4, Trust::Anyone).fault, "it is a folder");
  EXPECT_EQ(readGuarded("/dev/zero", 4, Trust::Anyone).fault, "it is a device, not a file");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(readGuarded(path("pipe"), 4, Trust::Anyone).state, State::Unreadable);
  EXPECT_EQ(readGuarded(path("pipe"), 4, Trust::Anyone).fault, "it is a pipe, not a file");
}

TEST_F(GuardedFileTest, WhatOthersMayWriteIsNotTrusted) {
  for (const mode_t mode : {0664, 0646}) {
    ASSERT_EQ(::chmod(path("file").c_str(), mode), 0);
    EXPECT_EQ(readGuarded(path("file"), 4, Trust::Private).state, State::Untrusted);
    EXPECT_EQ(readGuarded(path("file"), 4, Trust::Private).fault, "other users may write it");
    EXPECT_EQ(readGuarded(path("file"), 4, Trust::Anyone).state, State::Read);
    const bool isPublic = (mode & S_IWOTH) != 0;
    EXPECT_EQ(readGuarded(path("file"), 4, Trust::NotPublic).fault, isPublic ? "anyone may write it" : "");
  }
}

TEST_F(GuardedFileTest, InAFolderNoLinkIsFollowed) {
  fs::create_symlink(path("file"), path("link"));
  const Descriptor folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_TRUE(isPrivateFolder(folder.get()));
  EXPECT_EQ(readGuardedIn(folder.get(), "file", 4, Trust::Private).bytes, "text");
  EXPECT_EQ(readGuardedIn(folder.get(), "link", 4, Trust::Private).state, State::Unreadable);
  EXPECT_EQ(readGuardedIn(folder.get(), "link", 4, Trust::Private).fault,
            "it is a link, which is not followed here");
}

TEST_F(GuardedFileTest, OnlyWhatSomebodyNamesMayBeALink) {
  fs::create_symlink(path("file"), path("link"));
  EXPECT_EQ(readGuarded(path("link"), 4, Trust::Anyone).bytes, "text");
  EXPECT_EQ(readGuarded(path("link"), 4, Trust::NotPublic).bytes, "text");
  EXPECT_EQ(readGuarded(path("link"), 4, Trust::Private).state, State::Unreadable);
  fs::create_symlink(path("nowhere"), path("lost"));
  EXPECT_EQ(readGuarded(path("lost"), 4, Trust::Private).state, State::Unreadable) << "there is something";
}

TEST_F(GuardedFileTest, FoldersAreMadePrivate) {
  const mode_t before = ::umask(0);
  EXPECT_EQ(makePrivateFolder(path("a/b")), "");
  ::umask(before);
  struct stat info{};
  ASSERT_EQ(::stat(path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  EXPECT_EQ(makePrivateFolder(path("a/b")), "");
  ASSERT_EQ(::chmod(path("a/b").c_str(), 0777), 0);
  EXPECT_EQ(makePrivateFolder(path("a/b")), "other users may write it");
  EXPECT_EQ(faultOfPrivateFolder(path("file")), "it is not a folder");
  EXPECT_EQ(makePrivateFolder(path("c")), "");
  fs::create_symlink(path("c"), path("link"));
  EXPECT_EQ(makePrivateFolder(path("link")), "it is a link, which is not followed here");
  EXPECT_EQ(makePrivateFolder(path("link/below")), "") << "where the cache is may be a link";
  EXPECT_NE(faultOfPrivateFolder(path("none")), "");
  EXPECT_NE(makePrivateFolder(path("file/below")), "");
}

} // namespace
} // namespace deft::support
