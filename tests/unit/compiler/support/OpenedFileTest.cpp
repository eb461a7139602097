#include "compiler/support/OpenedFile.h"

#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

namespace deft::support {
namespace {

namespace fs = std::filesystem;

class OpenedFileTest : public testing::Test {
protected:
  OpenedFileTest() {
    folder_ = (fs::temp_directory_path() / "deft-opened-XXXXXX").string();
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    std::ofstream(path("file")) << "text";
    EXPECT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    fs::create_symlink(path("file"), path("link"));
  }
  ~OpenedFileTest() override { fs::remove_all(folder_); }

  std::string path(const std::string &name) const { return folder_ + "/" + name; }
  std::string faultOf(const std::string &name, Links links = Links::Followed) const {
    return openRegular(AT_FDCWD, path(name).c_str(), links).fault;
  }
  void makeSocket(const std::string &name) const {
    const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address), 0);
  }

  std::string folder_;
};

TEST_F(OpenedFileTest, OnlyRegularFilesAreOpened) {
  makeSocket(path("socket"));
  EXPECT_EQ(faultOf("file"), "");
  EXPECT_EQ(faultOf("link"), "");
  EXPECT_EQ(faultOf("pipe"), "it is a pipe, not a file");
  EXPECT_EQ(faultOf("socket"), "it is a socket, not a file");
  EXPECT_EQ(faultOf("."), "it is a folder");
  EXPECT_EQ(openRegular(AT_FDCWD, "/dev/zero", Links::Followed).fault, "it is a device, not a file");
}

TEST_F(OpenedFileTest, WhatIsNotThereIsAbsent) {
  for (const char *name : {"none", "file/below"})
    EXPECT_TRUE(openRegular(AT_FDCWD, path(name).c_str(), Links::Refused).isAbsent) << name;
  EXPECT_FALSE(openRegular(AT_FDCWD, path("pipe").c_str(), Links::Refused).isAbsent);
}

TEST_F(OpenedFileTest, LinksAreRefusedWhereThatIsAskedFor) {
  fs::create_symlink(path("nowhere"), path("lost"));
  EXPECT_EQ(faultOf("file", Links::Refused), "");
  for (const char *name : {"link", "lost"})
    EXPECT_EQ(faultOf(name, Links::Refused), "it is a link, which is not followed here") << name;
}

TEST_F(OpenedFileTest, WhatIsOpenAlreadyIsReadWhateverItIs) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // which the reader waits for
    EXPECT_EQ(::write(ends[1], "piped", 5), 5);
    ::close(ends[1]);
  });
  const std::string name = "/dev/fd/" + std::to_string(ends[0]);
  const OpenedFile opened = openNamed(name);
  EXPECT_EQ(opened.fault, "");
  EXPECT_EQ(*readOpened(opened.file.get(), name, 5), "piped");
  writer.join();
  ::close(ends[0]);
  EXPECT_EQ(openNamed(path("pipe")).fault, "it is a pipe, not a file");
  EXPECT_EQ(openNamed("/dev/zero").fault, "it is a device, not a file");
}

TEST_F(OpenedFileTest, NoMoreIsReadThanTheLimit) {
  const OpenedFile opened = openNamed(path("file"));
  EXPECT_EQ(readOpened(opened.file.get(), "f", 3).error().message, "`f` has more than the limit of 3 bytes");
}

TEST_F(OpenedFileTest, TheBeginningIsThatOfRegularFiles) {
  EXPECT_EQ(beginningOf(path("file"), 2), "te");
  EXPECT_EQ(beginningOf(path("file"), 9), "text");
  EXPECT_EQ(beginningOf(path("link"), 9), "text");
  EXPECT_EQ(beginningOf(path("link"), 9, Links::Refused), "");
  for (const char *name : {"pipe", "none", "."})
    EXPECT_EQ(beginningOf(path(name), 9), "") << name;
}

} // namespace
} // namespace deft::support
