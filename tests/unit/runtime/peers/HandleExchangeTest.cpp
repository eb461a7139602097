#include "runtime/peers/HandleExchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace deft::peers {
namespace {

std::string freshName() {
  static int count = 0;
  return "handles_test." + std::to_string(getpid()) + "." + std::to_string(count++);
}

FileHandle fileOf(char content) {
  FileHandle file(memfd_create("handle", 0));
  EXPECT_EQ(write(file.number(), &content, 1), 1);
  return file;
}

char contentOf(const FileHandle &file) {
  char content = 0;
  EXPECT_EQ(pread(file.number(), &content, 1, 0), 1);
  return content;
}

TEST(HandleExchangeTest, HandsMemoryToAnotherProcess) {
  const std::string name = freshName();
  const HandleExchange here = HandleExchange::open(name, 0).value();
  const pid_t child = fork();
  if (child == 0) {
    const auto there = HandleExchange::open(name, 1);
    _exit(there && there->send(0, fileOf('x').number(), 77) ? 0 : 1);
  }
  const auto handed = here.receive(20);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(handed) << handed.error().message;
  EXPECT_EQ(handed->rank, 1);
  EXPECT_EQ(handed->bytes, 77);
  EXPECT_EQ(contentOf(handed->handle), 'x') << "the process that made it has ended";
}

TEST(HandleExchangeTest, WhatIsWrongIsNamed) {
  const std::string name = freshName();
  const HandleExchange here = HandleExchange::open(name, 0).value();
  const auto twice = HandleExchange::open(name, 0);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().message, "rank 0 of `" + name + "` is there already");
  const auto early = here.send(1, fileOf('x').number(), 1);
  ASSERT_FALSE(early);
  EXPECT_THAT(early.error().message, testing::StartsWith("cannot hand memory to rank 1 of `" + name + "`: "));
  const auto late = here.receive(0.01);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message, "a rank of `" + name + "` has not handed on its memory in time");
  const auto tooLong = HandleExchange::open(std::string(150, 'x'), 0);
  ASSERT_FALSE(tooLong);
  EXPECT_THAT(tooLong.error().message, testing::EndsWith("is too long for a group of GPUs"));
}

} // namespace
} // namespace deft::peers
