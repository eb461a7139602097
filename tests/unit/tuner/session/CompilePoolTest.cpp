/// A pool of compilers that do what the chunk of a config says.

#include "tuner/session/CompilePool.h"

#include "tests/unit/runtime/config_cache/ConfigTesting.h"

#include <gtest/gtest.h>

#include <thread>
#include <unistd.h>

namespace deft::session {
namespace {

using measure::Message;

constexpr int kDies = 7, kIsRefused = 8, kHangs = 9;

class Compiler : public measure::Service {
public:
  support::Result<Message> handle(const Message &request) override {
    const int stages = request.head.at("config").at("phases").at(0).at("stages");
    if (stages == kDies)
      ::_exit(1);
    if (stages == kIsRefused)
      return support::Error{support::ErrorCode::Diagnostics, "too large", ""};
    if (stages == kHangs)
      std::this_thread::sleep_for(std::chrono::hours(1));
    return Message{{{"kernels", stages}, {"process", ::getpid()}, {"times", ++times_}}, {"machine code"}};
  }

private:
  int times_ = 0;
};

CompilePool poolOf(int processes, double seconds = 60) {
  return CompilePool(
      []() -> support::Result<std::unique_ptr<measure::Service>> {
        return std::unique_ptr<measure::Service>(new Compiler);
      },
      processes, seconds);
}

/// Kernels are told by their stages, plans by their chunk.
config::Config configOf(int stages, int chunk = 256) {
  config::Config config = config_cache::someConfig(chunk);
  config.phases[0].stages = stages;
  return config;
}

TEST(CompilePoolTest, ConfigsThatDifferInPlansAloneAreCompiledOnce) {
  CompilePool pool = poolOf(1);
  const CompilePool::Compiled first = pool.get(configOf(2));
  EXPECT_EQ(first.error, "");
  EXPECT_EQ(first.kernels.head["kernels"], 2);
  EXPECT_EQ(first.kernels.blobs, std::vector<std::string>{"machine code"});
  config::Config other = configOf(2, 1024);
  other.partition = spec::Partition::Union;
  other.phases[0].rowsAbove = 32;
  EXPECT_TRUE(pool.has(other));
  EXPECT_EQ(pool.get(other).kernels.head["times"], 1);
  EXPECT_FALSE(pool.has(configOf(3)));
  EXPECT_EQ(pool.get(configOf(3)).kernels.head["times"], 2) << "by the same process";
}

/// Kernels for plans that deal tokens are others, where a family has such.
TEST(CompilePoolTest, AnOrderThatDealsHasKernelsOfItsOwn) {
  CompilePool pool = poolOf(1);
  config::Config config = configOf(2);
  config.phases[0].family = config::Family::Sm90;
  (void)pool.get(config);
  config.order = config::Order::Alternate;
  EXPECT_TRUE(pool.has(config));
  config.order = config::Order::Mixed;
  EXPECT_FALSE(pool.has(config));
}

TEST(CompilePoolTest, WorkIsDoneAheadBySeveral) {
  CompilePool pool = poolOf(2);
  pool.ahead({configOf(2), configOf(3), configOf(4), configOf(2)});
  const auto areDone = [&] {
    return pool.has(configOf(2)) && pool.has(configOf(3)) && pool.has(configOf(4));
  };
  for (int i = 0; i < 200 && !areDone(); ++i) // in any order
    pool.wait(0.05);
  EXPECT_TRUE(areDone());
  EXPECT_NE(pool.get(configOf(2)).kernels.head["process"], pool.get(configOf(3)).kernels.head["process"]);
}

TEST(CompilePoolTest, WhatCannotBeCompiledIsAnErrorOfItsOwn) {
  CompilePool pool = poolOf(1);
  EXPECT_EQ(pool.get(configOf(kIsRefused)).error, "too large");
  EXPECT_NE(pool.get(configOf(kDies)).error, "");
  EXPECT_TRUE(pool.has(configOf(kDies))) << "nobody would have to wait for it";
  EXPECT_EQ(pool.get(configOf(2)).kernels.head["times"], 1) << "by a new process";
  CompilePool hasty = poolOf(1, 1); // enough for a new process on a busy machine
  EXPECT_EQ(hasty.get(configOf(kHangs)).error, "the compiler did not end within 1 s");
  EXPECT_EQ(hasty.get(configOf(kIsRefused)).error, "too large");
}

TEST(CompilePoolTest, AMachineWithoutKernelsNeedsNone) {
  CompilePool pool = poolOf(0);
  EXPECT_FALSE(pool.isNeeded());
  EXPECT_TRUE(pool.has(configOf(2)));
  pool.ahead({configOf(kDies)});
  pool.wait(0);
}

TEST(CompilePoolTest, ACompilerThatDoesNotStartIsTheError) {
  CompilePool pool(
      []() -> support::Result<std::unique_ptr<measure::Service>> {
        return support::Error{support::ErrorCode::Environment, "no NVRTC", ""};
      },
      1, 10);
  EXPECT_EQ(pool.get(configOf(2)).error, "no NVRTC");
}

} // namespace
} // namespace deft::session
