#include "compiler/codegen/cpu/PipeCatcher.h"

#include "tests/unit/runtime/module_cache/TestFolder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <future>
#include <sys/wait.h>
#include <unistd.h>

namespace deft::codegen::cpu {
namespace {

/// More than a pipe holds, and no two stretches of it alike.
std::string longText() {
  std::string text;
  for (int i = 0; i < 100'000; ++i)
    text += std::to_string(i) + " ";
  return text;
}

class PipeCatcherTest : public testing::Test {
protected:
  module_cache::TestFolder folder;
  const std::string path = folder.path("pipe");
};

TEST_F(PipeCatcherTest, WhatIsWrittenIsThereToTheLastByte) {
  const std::string text = longText();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, text.size()}) {
    PipeCatcher catcher(path);
    ASSERT_TRUE(catcher.isReady());
    std::ofstream(path, std::ios::binary) << text.substr(0, bytes);
    EXPECT_EQ(catcher.taken(), text.substr(0, bytes));
    std::filesystem::remove(path);
  }
}

TEST_F(PipeCatcherTest, ItMayBeWrittenTwiceOrNotTaken) {
  const PipeCatcher left(folder.path("left"));
  PipeCatcher catcher(path);
  std::ofstream(path, std::ios::binary) << "one, ";
  std::ofstream(path, std::ios::binary) << "two";
  EXPECT_EQ(catcher.taken(), "one, two");
}

TEST_F(PipeCatcherTest, AProcessThatHasForkedMeanwhileIsNotWaitedFor) {
  PipeCatcher catcher(path);
  ASSERT_TRUE(catcher.isReady());
  const pid_t child = ::fork();
  if (child == 0)
    for (;;)
      ::pause();
  ASSERT_GT(child, 0);
  std::ofstream(path, std::ios::binary) << "all";
  auto taken = std::async(std::launch::async, [&] { return catcher.taken(); });
  const auto state = taken.wait_for(std::chrono::seconds(20));
  ::kill(child, SIGKILL); // with it go its ends of the pipe
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(state, std::future_status::ready);
  EXPECT_EQ(taken.get(), "all");
}

TEST_F(PipeCatcherTest, WhereThereCanBeNoPipeItSaysSo) {
  EXPECT_FALSE(PipeCatcher(folder.path("none/pipe")).isReady());
  std::ofstream(path) << "a file";
  EXPECT_FALSE(PipeCatcher(path).isReady());
}

} // namespace
} // namespace deft::codegen::cpu
