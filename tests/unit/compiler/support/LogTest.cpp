#include "compiler/support/Log.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace deft::support;

namespace {

class LogTest : public ::testing::Test {
protected:
  ~LogTest() override { setLog(nullptr); }
};

TEST_F(LogTest, NobodyIsToldUnlessAskedFor) {
  EXPECT_FALSE(isLogged());
  const LoggedSpan span;
  bool hasMadeWords = false;
  span.end(LogKind::Plan, [&] {
    hasMadeWords = true;
    return std::string("words");
  });
  EXPECT_FALSE(hasMadeWords);
}

TEST_F(LogTest, TellsKindTextAndTime) {
  std::vector<LogMessage> told;
  setLog([&](const LogMessage &message) { told.push_back(message); });
  log({LogKind::StalePlan, "an old plan"});
  const LoggedSpan span;
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  span.end(LogKind::Compile, [] { return std::string("a kernel"); });
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].kind, LogKind::StalePlan);
  EXPECT_EQ(told[0].text, "an old plan");
  EXPECT_LT(told[0].durationUs, 0);
  EXPECT_EQ(told[1].kind, LogKind::Compile);
  EXPECT_EQ(told[1].text, "a kernel");
  EXPECT_GE(told[1].durationUs, 2000);
}

TEST_F(LogTest, NoFunctionIsSilenceAgain) {
  int told = 0;
  setLog([&](const LogMessage &) { ++told; });
  log({LogKind::Plan, "one"});
  setLog(nullptr);
  log({LogKind::Plan, "two"});
  EXPECT_EQ(told, 1);
}

TEST_F(LogTest, WhatHappensWithinACallIsNotTold) {
  int told = 0;
  setLog([&](const LogMessage &) {
    ++told;
    EXPECT_FALSE(isLogged());
    log({LogKind::Plan, "a plan that the listener makes"});
  });
  log({LogKind::Plan, "one"});
  log({LogKind::Plan, "two"});
  EXPECT_EQ(told, 2);
}

TEST_F(LogTest, AnExceptionOfTheFunctionGoesNoFarther) {
  int told = 0;
  setLog([&](const LogMessage &) {
    ++told;
    throw std::runtime_error("no");
  });
  log({LogKind::Plan, "one"});
  log({LogKind::Plan, "two"}); // a lock that was kept would hang here or in setLog
  EXPECT_EQ(told, 2);
}

TEST_F(LogTest, AChildIsSilent) {
  setLog([](const LogMessage &) { FAIL() << "the parent's function was called"; });
  silenceLog();
  EXPECT_FALSE(isLogged());
  log({LogKind::Plan, "one"});
}

// Under the thread sanitizer this also looks for races.
TEST_F(LogTest, AfterAChangeTheFormerFunctionIsCalledNoMore) {
  std::atomic<bool> isOver = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      while (!isOver)
        log({LogKind::Plan, "a plan"});
    });
  for (int round = 0; round < 200; ++round) {
    auto alive = std::make_unique<std::atomic<bool>>(true);
    setLog([flag = alive.get()](const LogMessage &) { EXPECT_TRUE(*flag); });
    std::this_thread::yield();
    setLog(nullptr);
    *alive = false;
  }
  isOver = true;
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace
