#include "compiler/support/WriteAll.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace deft::support {
namespace {

volatile std::sig_atomic_t signals = 0;

/// What a child process finds that may write files of 4096 bytes: 0 where all is right.
int inLimitedChild(int (*find)(int file)) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{4096, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    std::string name = "/tmp/deft-write-XXXXXX";
    const int file = ::mkstemp(name.data());
    ::unlink(name.c_str());
    ::_exit(file < 0 ? 99 : find(file));
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(WriteAllTest, AFileBeyondTheLimitIsAnErrorAndNotTheEnd) {
  const int found = inLimitedChild([](int file) {
    errno = 0;
    if (writeAll(file, std::string(10000, 'x')) || errno != EFBIG)
      return 1;
    return ::lseek(file, 0, SEEK_END) == 4096 ? 0 : 2;
  });
  EXPECT_EQ(found, 0);
}

TEST(WriteAllTest, WhatTheProgramDoesWithTheSignalStays) {
  const int found = inLimitedChild([](int file) {
    std::signal(SIGXFSZ, [](int) { signals = signals + 1; });
    if (writeAll(file, std::string(10000, 'x')) || signals != 0)
      return 1; // it was ours, and is gone
    sigset_t blocked;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    if (::sigismember(&blocked, SIGXFSZ) == 1)
      return 2;
    (void)!::write(file, "x", 1); // the program's own
    return signals == 1 ? 0 : 3;
  });
  EXPECT_EQ(found, 0);
}

TEST(WriteAllTest, ASignalThatWaitedBeforeStillComes) {
  const int found = inLimitedChild([](int file) {
    std::signal(SIGXFSZ, [](int) { signals = signals + 1; });
    sigset_t own, before;
    ::sigemptyset(&own);
    ::sigaddset(&own, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &own, &before);
    ::raise(SIGXFSZ);
    if (writeAll(file, std::string(10000, 'x')))
      return 1;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return signals == 1 ? 0 : 2;
  });
  EXPECT_EQ(found, 0);
}

TEST(WriteAllTest, AllIsWritten) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_TRUE(writeAll(ends[1], "all of it"));
  char got[16] = {};
  EXPECT_EQ(::read(ends[0], got, sizeof got), 9);
  EXPECT_STREQ(got, "all of it");
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_FALSE(writeAll(-1, "x"));
}

} // namespace
} // namespace deft::support
